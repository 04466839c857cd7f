#!/bin/sh
# A stand-in for an agent that prints Pi's JSON events, to see what `policysim watch` makes of them.
# Each word is a step; the number after the colon is in seconds:
#   tool:2      a tool that runs so long        question:2  a question that a human answers after so long
#   retry:2     a provider backoff that is announced and waited out
#   think:2     so long without a word          answer      a message
#   done        the result                      hang        no end
say() { printf '%s\n' "$1"; }
say '{"type":"session","version":3,"id":"stand-in","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}'
say '{"type":"agent_start"}'
say '{"type":"turn_start"}'
call=0
for step in "$@"; do
    seconds=${step#*:}
    call=$((call + 1))
    case $step in
    tool:*)
        say "{\"type\":\"tool_execution_start\",\"toolCallId\":\"c$call\",\"toolName\":\"bash\",\"args\":{}}"
        sleep "$seconds"
        say "{\"type\":\"tool_execution_end\",\"toolCallId\":\"c$call\",\"toolName\":\"bash\",\"isError\":false}"
        ;;
    question:*)
        say "{\"type\":\"extension_ui_request\",\"id\":\"q$call\",\"method\":\"confirm\",\"title\":\"go on?\"}"
        sleep "$seconds"
        say '{"type":"turn_start"}'
        ;;
    retry:*)
        ms=$(awk "BEGIN { print int($seconds * 1000) }")
        say "{\"type\":\"auto_retry_start\",\"attempt\":1,\"maxAttempts\":3,\"delayMs\":$ms,\"errorMessage\":\"overloaded\"}"
        sleep "$seconds"
        say '{"type":"turn_start"}'
        ;;
    think:*) sleep "$seconds" ;;
    answer)
        say '{"type":"message_start","message":{"role":"assistant"}}'
        say '{"type":"message_update","message":{},"assistantMessageEvent":{"type":"text_delta","delta":"done"}}'
        say '{"type":"message_end","message":{"role":"assistant","stopReason":"stop"}}'
        ;;
    done)
        say '{"type":"turn_end","message":{},"toolResults":[]}'
        say '{"type":"agent_end","messages":[{"role":"assistant","stopReason":"stop"}]}'
        ;;
    hang) exec sleep 86400 ;;
    esac
done
