// Opens a report from disk in headless Chromium, moves every control, and prints what it saw as JSON.
// node drive.mjs CHROMIUM FILE AXE [SCREENSHOTS]; AXE is the path of axe-core's script, or empty.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, file, axe, screenshots] = process.argv.slice(2);
// Whoever calls removes the folder that this runs in.
const profile = mkdtempSync(join(process.cwd(), "profile-"));
const browser = spawn(
  chromium,
  [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank",
  ],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
const [, , , send, receive] = browser.stdio;

let last = 0;
const waiting = new Map();
const seen = { requests: [], errors: [] };
let loaded = () => {};
let rest = "";
receive.on("data", (chunk) => {
  rest += chunk;
  const messages = rest.split("\0");
  rest = messages.pop();
  for (const text of messages) {
    const message = JSON.parse(text);
    if (message.id) {
      const { resolve, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(JSON.stringify(message.error)));
      else resolve(message.result);
      continue;
    }
    const { method, params } = message;
    if (method === "Network.requestWillBeSent") seen.requests.push(params.request.url);
    if (method === "Runtime.exceptionThrown") seen.errors.push(JSON.stringify(params.exceptionDetails));
    if (method === "Runtime.consoleAPICalled" && params.type === "error") seen.errors.push(JSON.stringify(params.args));
    if (method === "Log.entryAdded" && params.entry.level === "error") seen.errors.push(params.entry.text);
    if (method === "Page.loadEventFired") loaded();
  }
});

function call(method, params = {}, sessionId) {
  last += 1;
  const id = last;
  const done = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  send.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
  return done;
}

const { targetId } = await call("Target.createTarget", { url: "about:blank" });
const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
const page = (method, params) => call(method, params, sessionId);
for (const domain of ["Page", "Network", "Runtime", "Log"]) await page(`${domain}.enable`);

async function evaluate(expression) {
  const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
  return result.value;
}

async function open(width) {
  await page("Emulation.setDeviceMetricsOverride", { width, height: 1000, deviceScaleFactor: 1, mobile: false });
  const load = new Promise((resolve) => { loaded = resolve; });
  await page("Page.navigate", { url: pathToFileURL(file).href });
  await load;
}

async function scheme(value) {
  await page("Emulation.setEmulatedMedia", { media: "", features: [{ name: "prefers-color-scheme", value }] });
}

async function shot(name) {
  if (!screenshots) return;
  const [width, height] = await evaluate("[document.documentElement.clientWidth, document.documentElement.scrollHeight]");
  for (let y = 0; y < height; y += 1600) {
    const clip = { x: 0, y, width, height: Math.min(1600, height - y), scale: 1 };
    const { data } = await page("Page.captureScreenshot", { format: "png", captureBeyondViewport: true, clip });
    writeFileSync(join(screenshots, `${name}-${y / 1600}.png`), Buffer.from(data, "base64"));
  }
}

async function audit() {
  if (!axe) return null;
  // The page forbids foreign scripts to itself, not to the inspector.
  await evaluate(readFileSync(axe, "utf8"));
  return evaluate(`axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations
    .filter((of) => of.impact === "serious" || of.impact === "critical")
    .map((of) => of.id + ": " + of.nodes.map((node) => node.html.slice(0, 120) + " " + node.failureSummary).slice(0, 3).join(" | ")))`);
}

// What the page shows for every position of the controls, one control after the other and every cell.
const walk = `(() => {
  const at = (id) => document.getElementById(id);
  const sliders = Array.from(document.querySelectorAll("#what-if input[type=range]"));
  const axes = sliders.filter((slider) => slider.id.startsWith("axis-"));
  const set = (control, value) => {
    control.value = String(value);
    control.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const shown = () => {
    const found = { controls: {}, marks: {} };
    for (const slider of sliders) found.controls[slider.id] = at(slider.id + "-shown").textContent;
    for (const place of document.querySelectorAll("#what-if dd")) {
      found[place.id] = { text: place.textContent, ...place.dataset };
    }
    for (const chart of document.querySelectorAll("figure")) {
      const place = (mark) => [mark.getAttribute("cx") ?? mark.getAttribute("x1"), mark.getAttribute("cy") ?? mark.getAttribute("y1")];
      found.marks[chart.id] = Array.from(chart.querySelectorAll(".whatif"), (mark) => place(mark).join(" "));
    }
    found.cell = at("shown-cell") ? at("shown-cell").textContent : null;
    return found;
  };
  const cells = [];
  const positions = axes.map(() => 0);
  for (;;) {
    axes.forEach((slider, index) => set(slider, positions[index]));
    cells.push(shown());
    let index = axes.length - 1;
    while (index >= 0 && positions[index] === Number(axes[index].max)) { positions[index] = 0; index -= 1; }
    if (index < 0) break;
    positions[index] += 1;
    if (cells.length > 500) break;
  }
  const each = (id) => {
    const control = at(id);
    if (!control) return [];
    const found = [];
    for (let value = 0; value <= Number(control.max); value += 1) { set(control, value); found.push(shown()); }
    return found;
  };
  const waits = each("wait");
  // On from the middle of the first control: an end of it is seldom the cheapest.
  if (axes.length > 0) set(axes[0], Math.floor(Number(axes[0].max) / 2));
  const costs = [];
  const restart = at("restart-control");
  for (let value = 0; restart && value <= Number(restart.max); value += 1) {
    set(restart, value);
    costs.push(...each("hang-rate-control"));
  }
  const strata = [];
  const stratum = at("stratum");
  for (const option of stratum ? stratum.options : []) {
    set(stratum, option.value);
    strata.push({ option: option.textContent, ...shown() });
  }
  return { cells, waits, costs, strata };
})()`;

const sorted = `(() => {
  const faults = [];
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const [column, head] of Array.from(table.tHead.rows[0].cells).entries()) {
      const button = head.querySelector("button");
      if (!button) continue;
      for (const [way, sign] of [["ascending", 1], ["descending", -1]]) {
        button.click();
        if (head.getAttribute("aria-sort") !== way) faults.push(button.textContent + " is not " + way);
        const keys = Array.from(table.tBodies[0].rows, (row) => row.cells[column].dataset.sort).filter((key) => key !== undefined).map(Number);
        if (keys.some((key, index) => index > 0 && sign * (key - keys[index - 1]) < 0)) faults.push(button.textContent + " " + way);
      }
    }
  }
  return faults;
})()`;

const result = {};
try {
  await open(1200);
  result.walk = await evaluate(walk);
  result.sort_faults = await evaluate(sorted);
  result.tables = await evaluate(`document.querySelectorAll("table").length`);
  result.dead_links = await evaluate(`Array.from(document.querySelectorAll("a"), (link) => link.getAttribute("href"))
    .filter((href) => !href.startsWith("#") || !document.getElementById(href.slice(1)))`);
  result.scripts = await evaluate(`document.scripts.length`);
  result.images = await evaluate(`document.querySelectorAll("img, iframe, object, embed, link").length`);
  result.text = await evaluate(`document.body.innerText`);
  await open(1200);
  // The keyboard alone: to the first control, and one step to the right.
  result.keyboard = [];
  if (await evaluate(`!!document.getElementById("axis-0")`)) {
    await evaluate(`(() => { const first = document.getElementById("axis-0"); first.value = "0"; first.dispatchEvent(new Event("input")); first.focus(); })()`);
    result.keyboard.push(await evaluate(`document.getElementById("axis-0-shown").textContent`));
    for (const type of ["keyDown", "keyUp"]) {
      await page("Input.dispatchKeyEvent", { type, key: "ArrowRight", code: "ArrowRight", windowsVirtualKeyCode: 39 });
    }
    result.keyboard.push(await evaluate(`document.getElementById("axis-0-shown").textContent`));
  }
  result.audits = {};
  for (const value of ["light", "dark"]) {
    await scheme(value);
    await open(1200);
    await shot(value);
    result.audits[value] = await audit();
  }
  await scheme("light");
  await open(360);
  await shot("narrow");
  result.overflow = await evaluate(`document.documentElement.scrollWidth - window.innerWidth`);
  if (screenshots) {
    await open(1200);
    const { data } = await page("Page.printToPDF", { printBackground: true });
    writeFileSync(join(screenshots, "print.pdf"), Buffer.from(data, "base64"));
  }
  result.requests = seen.requests.filter((url) => url !== pathToFileURL(file).href);
  result.errors = seen.errors;
  process.stdout.write(JSON.stringify(result));
} finally {
  const gone = new Promise((resolve) => browser.on("exit", resolve));
  const stop = setTimeout(() => browser.kill("SIGKILL"), 5_000);
  await Promise.race([call("Browser.close").catch(() => {}), gone]);
  await gone;
  clearTimeout(stop);
}
process.exit(0);
