//! What the words and figures of a report mean: every table and every field of the page links here.

/// A definition: its id, which is also the anchor of its title in Markdown, its title and its text.
pub type Definition = (&'static str, &'static str, &'static str);

/// Every definition, in alphabetical order.
pub const DEFINITIONS: [Definition; 32] = [
    (
        "aborted-in-silence",
        "Aborted in silence",
        "A run that a human or its parent stopped while nothing came. It may have been stopped because nothing came; what would have followed is not known, so figures that depend on it are given from one extreme to the other.",
    ),
    (
        "budget",
        "Budget",
        "The most time that a run may take in all. What pauses it is part of the policy.",
    ),
    (
        "candidate",
        "Candidate",
        "The policy that this report proposes.",
    ),
    (
        "cell",
        "Cell",
        "One candidate of a sweep: a whole policy, the base with one value for every swept axis.",
    ),
    (
        "certified",
        "Certified",
        "The one-sided 95 % upper limit of the false-kill rate, unresolved runs counted as kills, is at most the acceptable rate, on runs that did not choose the cell or along an order of tests that the grid declared before the data were read. Where several sequences of windows are tested, one for every setting of the other axes, they share the error of 5 %, which widens each limit: a limit to certify is then larger than that of the cell alone. `needs n` is the number of runs with which the same counts would be enough.",
    ),
    (
        "cost",
        "Cost",
        "Expected time lost per run at a hang rate h: (1 − h) times the work that false kills throw away and the restarts they cause, plus h times the slot time that a hang holds (in a sweep with simulated parents, the time until its parent knows of it). What a restart costs sets the ratio between the two. Unresolved runs count as false kills, which makes it an upper bound.",
    ),
    (
        "cut-short",
        "Cut short",
        "A silence whose end was not seen: the run was stopped or its log ends. It lasted at least as long as was seen; quantiles and curves are Kaplan-Meier estimates that count it so.",
    ),
    (
        "detection-time",
        "Detection time",
        "From the last sign of life of a hung run to the firing. Measured on runs that the record labels as hung; where there are none, the idle window itself.",
    ),
    (
        "false-kill",
        "False kill",
        "A run that the policy kills though it was alive: activity resumed after an idle kill, or it completed after a total or turn kill.",
    ),
    (
        "false-kill-rate",
        "False-kill rate",
        "False kills per run, runs labelled as hung left out. The interval is Clopper-Pearson at 95 %; the one-sided upper limit, which verdicts take, counts unresolved runs as kills and takes days (or sessions, if asked to) as the unit where kills come together on them.",
    ),
    (
        "front",
        "Front",
        "The Pareto front: cells that no other cell beats in both false kills and what hangs cost.",
    ),
    (
        "hang-rate",
        "Hang rate",
        "The share of runs that hang. Its range is the Clopper-Pearson interval of the runs labelled as hung; where none is, only its upper limit is known.",
    ),
    (
        "idle-window",
        "Idle window",
        "How long the idle clock may run before the policy kills the run. The clock is re-armed by what the policy counts as activity and pauses for what it pauses for. A silence of exactly the window is a kill.",
    ),
    (
        "interval",
        "Interval",
        "95 % confidence. Quantiles and shares of silences take whole sessions as units, because silences of one session resemble each other; rates take runs.",
    ),
    (
        "killed",
        "Killed",
        "Runs that the policy ends by any limit, hung ones included.",
    ),
    (
        "max",
        "Max",
        "The longest silence, or the largest size, of the record; with a cut one, at least that.",
    ),
    (
        "mcnemar",
        "McNemar",
        "The exact two-sided p-value of the runs that one of two policies kills and the other does not, if both killed equally often. `nested` where the policies differ in nothing but the idle window: then the sign is known.",
    ),
    (
        "n",
        "n",
        "How many samples a figure stands on: silences, runs, or hangs, as the title of the table says.",
    ),
    (
        "policy-in-force",
        "Policy in force",
        "The policy that the proposed one would replace, named with `--current`.",
    ),
    (
        "pre-token-wait",
        "Pre-token wait",
        "From handing control to the model to its first output. Where a log stamps an output when it is finished, it is an upper bound.",
    ),
    (
        "retry-envelope",
        "Retry envelope",
        "What the waits of a whole chain of provider retries add up to: without jitter, with full jitter, and with every retry-after header at its cap. It is silence unless the harness announces the retries. The requests' own time comes on top.",
    ),
    (
        "run-size",
        "Run size",
        "What budgets and caps are held against: a run's span (wall), the same without waits for humans, the host's sleep and the time between segments (active), its model turns, and its finished tool calls.",
    ),
    (
        "seen",
        "Seen",
        "Silences that were seen to last at least that long, those cut short included.",
    ),
    (
        "settlement-simulation",
        "Settlement simulation",
        "Parents that spawn four delegates each, work, wait, read an expiry as the policy says and wait again, over the runs of this record, each under its own watchdog; of the hangs that begin inside a wait, the share whose kill settles before that wait is over. `policysim settle` prints it with everything that was assumed.",
    ),
    (
        "settles-in-wait",
        "Settles in wait",
        "The share of hangs whose kill reaches the parent inside the TaskWait in which they begin, for a start uniform in the wait: max(0, 1 − (window + settling lag) / wait).",
    ),
    (
        "slots-lost",
        "Slots lost",
        "From the last activity of a hung run to its settling, over all hung runs of the record.",
    ),
    (
        "taskwait",
        "TaskWait",
        "How long a parent waits for a delegate before it has to decide what to do next.",
    ),
    (
        "time-account",
        "Time account",
        "Every millisecond of a run stands in one account: model (it has control), tool (a call or a child is open), human (somebody is asked), retry (a provider backoff is open), compaction, suspend (the host sleeps), unknown (the run had ended and was not resumed yet, or the record does not say).",
    ),
    (
        "timeline",
        "Timeline",
        "One run under the candidate: when the policy fired, what its clocks read, and what the record shows next. It is an example, and no rate.",
    ),
    (
        "turn-cap",
        "Turn cap",
        "The most model turns that a run may take.",
    ),
    (
        "unresolved",
        "Unresolved",
        "A run about which the record cannot tell: killed with nothing recorded afterwards, or not killed within a record that ends before the run does. Upper limits count it as a kill.",
    ),
    (
        "work-lost",
        "Work lost",
        "The active time of falsely killed runs up to the firing: what has to be done again.",
    ),
];

/// The title of a definition.
pub fn title(id: &str) -> Option<&'static str> {
    DEFINITIONS
        .iter()
        .find(|(of, ..)| *of == id)
        .map(|(_, title, _)| *title)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GitHub's anchor of a title: small letters, spaces to dashes.
    #[test]
    fn every_id_is_the_anchor_of_its_title() {
        let mut last = "";
        for (id, title, _) in DEFINITIONS {
            let anchor = title.to_lowercase().replace(' ', "-");
            assert_eq!(anchor, id);
            assert!(last < id, "{id} stands after {last}");
            last = id;
        }
    }
}
