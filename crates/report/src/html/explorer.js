"use strict";
// The page computes no figure: every text it shows was made with the report, and controls only choose among them.
(function () {
  const data = JSON.parse(document.getElementById("page-data").textContent);
  const at = (id) => document.getElementById(id);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const body = table.tBodies[0];
        const key = (row) => row.cells[column].dataset.sort;
        const text = (row) => row.cells[column].textContent;
        const rows = Array.from(body.rows);
        rows.sort((left, right) => {
          const [a, b] = [key(left), key(right)];
          // What is not estimable stands last, whichever way round.
          if ((a === undefined) !== (b === undefined)) return a === undefined ? 1 : -1;
          const order = a === undefined ? compare(text(left), text(right)) : Number(a) - Number(b);
          return up ? order : -order;
        });
        rows.forEach((row) => body.append(row));
      });
    });
  }

  if (!data.cells) return;
  const sliders = data.axes.map((axis, index) => at("axis-" + index));
  const wait = at("wait");
  const rate = at("hang-rate-control");
  const restart = at("restart-control");
  const stratum = at("stratum");
  const byPlace = new Map(data.cells.map((cell) => [cell.at.join(","), cell]));

  function chosen() {
    return byPlace.get(sliders.map((slider) => Number(slider.value)).join(","));
  }

  function say(id, figure) {
    const place = at(id);
    if (!place) return;
    place.textContent = figure ? figure[0] : "not estimable";
    if (figure && figure[1] !== null && figure[1] !== undefined) {
      place.dataset.value = String(figure[1]);
    } else {
      delete place.dataset.value;
    }
    for (const side of ["lo", "up"]) {
      const limit = figure && figure[side === "lo" ? 2 : 3];
      if (limit !== null && limit !== undefined) place.dataset[side] = String(limit);
      else delete place.dataset[side];
    }
  }

  function name(slider, text) {
    if (!slider) return;
    slider.setAttribute("aria-valuetext", text);
    at(slider.id + "-shown").textContent = text;
  }

  function mark(chart, place, across) {
    const svg = document.querySelector("#chart-" + chart + " svg");
    const found = data.charts[chart];
    if (!svg || !found) return;
    svg.querySelectorAll(".whatif").forEach((old) => old.remove());
    if (!place) return;
    const shape = document.createElementNS("http://www.w3.org/2000/svg", across ? "line" : "circle");
    shape.setAttribute("class", "whatif");
    const [x, y] = place;
    if (across) {
      const [, top, , bottom] = found.plot;
      for (const [key, value] of [["x1", x], ["x2", x], ["y1", top], ["y2", bottom]]) {
        shape.setAttribute(key, String(value));
      }
    } else {
      for (const [key, value] of [["cx", x], ["cy", y], ["r", radius[chart] || 13]]) shape.setAttribute(key, String(value));
    }
    svg.append(shape);
  }

  const radius = { heat: 5, strata: 9 };

  function place(chart, key) {
    const found = data.charts[chart];
    return found && found.marks[key];
  }

  function update() {
    const cell = chosen();
    if (!cell) return;
    data.axes.forEach((axis, index) => name(sliders[index], axis.values[Number(sliders[index].value)]));
    const waitAt = wait ? Number(wait.value) : 0;
    const rateAt = rate ? Number(rate.value) : 0;
    const restartAt = restart ? Number(restart.value) : 0;
    if (wait) name(wait, data.waits[waitAt][0]);
    if (rate) name(rate, data.hang_rates[rateAt][0]);
    if (restart) name(restart, data.restarts[restartAt][0]);

    at("shown-cell").textContent = cell.name;
    say("shown-runs", cell.runs);
    say("shown-rate", cell.rate);
    say("shown-limit", cell.limit);
    say("shown-unresolved", cell.unresolved);
    say("shown-detection", cell.detection);
    say("shown-slots", cell.slots);
    say("shown-work", cell.work);
    if (wait) say("shown-settle", cell.settle[waitAt]);
    if (rate) {
      say("shown-cost", cell.cost[restartAt][rateAt]);
      say("shown-cheapest", data.cheapest[restartAt][rateAt][cell.sequence]);
    }
    const group = stratum && stratum.value !== "" ? cell.strata[Number(stratum.value)] : null;
    at("stratum-answers").hidden = !group;
    if (group) {
      say("shown-stratum-runs", group.runs);
      say("shown-stratum-rate", group.rate);
      say("shown-stratum-limit", group.limit);
    }

    mark("strata", group ? place("strata", "stratum " + data.strata[Number(stratum.value)]) : null, false);

    const labelled = data.decision.axes
      .map((key) => key + "=" + data.axes.find((axis) => axis.key === key).values[cell.at[data.axes.findIndex((axis) => axis.key === key)]])
      .join(",");
    const own = data.axes.every(
      (axis, index) => !(axis.key in data.decision.fixed) || axis.values[cell.at[index]] === data.decision.fixed[axis.key],
    );
    mark("front", own ? place("front", "cell " + labelled) : null, false);
    mark("heat", place("heat", "cell " + cell.label), false);
    mark("survival", place("survival", "window " + cell.window_ms), true);
    if (wait) mark("settlement", place("settlement", "wait " + data.waits[waitAt][1]), true);
    if (rate) mark("hang-rate", place("hang-rate", "rate " + data.hang_rates[rateAt][1]), true);
  }

  for (const control of [...sliders, wait, rate, restart, stratum]) {
    if (control) control.addEventListener("input", update);
  }
  update();
})();
