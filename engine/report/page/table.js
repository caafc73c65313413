// The table of numbers. Its boxes choose the runs that the curves show.

const COLUMNS = [
  ["committed", "per second", (run) => count(run.committed_per_second)],
  ["aborted", "%", (run) => number(run.abort_rate, 2, 100)],
  ["mean", "latency", (run) => latency(run, "mean")],
  ["p50", "latency", (run) => latency(run, "p50")],
  ["p90", "latency", (run) => latency(run, "p90")],
  ["p99", "latency", (run) => latency(run, "p99")],
  ["p99.9", "latency", (run) => latency(run, "p999")],
  ["rate", "per second", (run) => (run.rate ? count(run.rate) : null)],
  ["lag", "mean", (run) => (run.schedule_lag_us ? duration(run.schedule_lag_us.mean) : null)],
  ["skipped", "count", (run) => (run.latency_limit_ms && run.rate ? count(run.skipped) : null)],
  ["late", "count", (run) => (run.latency_limit_ms ? count(run.late) : null)],
  ["verbs σ", "each", (run) => number(run.verbs_per_transaction, 2)],
  ["round trips", "each", (run) => number(run.per_transaction?.round_trips, 2)],
  ["nodes θ", "each", (run) => number(run.nodes_per_transaction, 2)],
  ["effective", "CPU %", (run) => number(run.effective_cpu, 1, 100)],
  ["sessions", "CPU each", (run) => (run.session_cpu_us ? duration(run.session_cpu_us) : null)],
];

function latency(run, which) {
  return run.latency_us ? duration(run.latency_us[which]) : null;
}

function number(value, digits, factor = 1) {
  return typeof value === "number" ? fixed(value * factor, digits) : null;
}

function showTable(runs, labels, swatch, shown, changed) {
  const section = document.getElementById("numbers");
  const wide = element("div", undefined, section);
  wide.className = "wide";
  const table = element("table", undefined, wide);
  const columns = COLUMNS.filter(([, , value]) => runs.some((run) => value(run) !== null));
  const broken = runs.some((run) => run.invariant && run.invariant !== "ok");
  const head = element("tr", undefined, element("thead", undefined, table));
  const boxes = runs.length > 1 && runs.some(hasCurves);
  element("th", boxes ? "run (boxes: shown as a curve)" : "run", head);
  for (const [title, unit] of columns) element("span", unit, element("th", title, head));
  if (broken) element("th", "invariant", head);
  const body = element("tbody", undefined, table);
  runs.forEach((run, i) => {
    const row = element("tr", undefined, body);
    const name = element("td", undefined, row);
    if (boxes && hasCurves(run)) {
      const box = element("input", undefined, name);
      box.type = "checkbox";
      box.checked = shown.has(i);
      box.setAttribute("aria-label", `show ${labels[i]} as a curve`);
      box.addEventListener("change", () => {
        if (box.checked) shown.add(i); else shown.delete(i);
        changed();
      });
    }
    const mark = element("span", undefined, name);
    mark.className = "swatch";
    mark.style.background = swatch(i);
    name.append(labels[i]);
    for (const [, , value] of columns) element("td", value(run) ?? "–", row);
    if (broken) element("td", run.invariant, row).className = run.invariant === "ok" ? "" : "broken";
  });
  if (columns.some(([title]) => title === "round trips")) {
    const paced = columns.some(([title]) => title === "rate");
    const schedule = "Latencies count from the scheduled start. Transactions began so much later (lag), or were " +
      "skipped, being later than the limit already. ";
    element("p", (paced ? schedule : "") + "Aborted: of all attempts. Latencies include attempts that were " +
      "repeated. Verbs (reads, writes, atomics, messages) and round trips are those of all attempts, for " +
      "each committed transaction. Effective CPU: of the coordinators' time, what they ran within attempts " +
      "that committed.", section).className = "note";
  }
}
