// What was run, where and when: the head of the page.

function element(tag, text, parent) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function distinct(values) {
  return [...new Set(values.filter((value) => value !== null && value !== undefined && value !== ""))];
}

function machineOf(run) {
  const host = run.host;
  if (!host) return run.fabric === "sim" ? "the simulator, in virtual time" : "";
  const cores = host.cores ? `${host.cores} ${host.cores === 1 ? "core" : "cores"}` : "";
  return [host.processor, cores, host.kernel].filter(Boolean).join(", ");
}

function clusterOf(run) {
  if (!run.fabric) return "";
  const plural = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
  return `${run.fabric}, ${plural(run.nodes, "node")} of ${plural(run.threads_per_node, "thread")}, ` +
    `${plural(run.replicas, "replica")}; ${plural(run.threads, "coordinator thread")} of ` +
    `${plural(run.coroutines, "coroutine")}`;
}

function settingsOf(run) {
  return Object.entries(run.settings || {}).map(([name, value]) => `${name}=${value}`).join(", ");
}

const ORIGIN_LINES_MAX = 6;

function showOrigin(runs) {
  const list = element("dl", undefined, document.getElementById("origin"));
  list.className = "origin";
  const line = (title, values, code) => {
    const shown = values.slice(0, ORIGIN_LINES_MAX);
    if (shown.length === 0) return;
    element("dt", title, list);
    const entry = element("dd", undefined, list);
    shown.forEach((value, i) => {
      if (i > 0) element("br", undefined, entry);
      element(code ? "code" : "span", value, entry);
    });
    if (values.length > shown.length) {
      element("br", undefined, entry);
      element("span", `and ${values.length - shown.length} others`, entry);
    }
  };
  line("command", distinct(runs.map((run) => run.command)), true);
  line("machine", distinct(runs.map(machineOf)));
  line("cluster", distinct(runs.map(clusterOf)));
  line("workload", distinct(runs.map((run) => run.settings && `${run.workload}: ${settingsOf(run)}`)));
  const started = distinct(runs.map((run) => run.started)).sort();
  const span = started.length > 1 ? `${started[0]} to ${started[started.length - 1]}` : started[0];
  line("started", span ? [span] : []);
  line("pg_rdmacc", distinct(runs.map((run) => run.version)));
}

function showLicence() {
  document.getElementById("licence").textContent =
    `Charts by Chart.js ${Chart.version}, © Chart.js Contributors, MIT License (chartjs.org). ` +
    "This page holds all its data and asks for nothing from the network.";
}
