#!/usr/bin/env python3
"""Pages of reports in a headless Chromium: made by rdmacc_bench and rdmacc_report from real runs, in
virtual time and in shared memory, and from others' JSON. Each chart must have been drawn, in
colours, where its axes are, and the page must say nothing on its console.

    tests/report/page_test.py [--keep=FOLDER]     keeps pages and screenshots there"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(ROOT, "build/release/bin")
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
LIMIT_S = 60

# Looks at the charts once they are drawn, in the page itself: what it finds is in the DOM after.
PROBE = """
<script>
"use strict";
const complaints = [];
window.addEventListener("error", (event) => complaints.push(event.message));
function colouredPixels(canvas) {
  // Of a copy: a canvas that is read is drawn in another way afterwards.
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const data = pen.getImageData(0, 0, copy.width, copy.height).data;
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, blue, opaque] = data.slice(i, i + 4);
    if (opaque > 0 && Math.max(red, green, blue) - Math.min(red, green, blue) > 40) ++coloured;
  }
  return coloured;
}
function lookAt(figure) {
  const canvas = figure.querySelector("canvas");
  const chart = Chart.getChart(canvas);
  const area = chart.chartArea;
  return {
    section: figure.closest(".grid").previousElementSibling.textContent,
    title: figure.querySelector("h3").textContent,
    sets: chart.data.datasets.length,
    points: chart.data.datasets.map((set) => set.data.length),
    axes: Object.values(chart.scales).filter((scale) => scale.options.title?.display)
      .map((scale) => scale.options.title.text),
    coloured: colouredPixels(canvas),
    height: area.bottom - area.top,
    width: area.right - area.left,
  };
}
window.addEventListener("load", () => setTimeout(() => {
  const box = document.querySelector("input[type=checkbox]");
  const seen = { charts: [], rows: document.querySelectorAll("tbody tr").length };
  seen.charts = [...document.querySelectorAll("figure")].map(lookAt);
  if (box) {
    box.click();
    seen.afterClick = [...document.querySelectorAll("figure")].map(lookAt);
    box.click();
  }
  seen.text = document.body.innerText;
  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const wide = document.querySelector(".wide");
  seen.cut = wide.scrollWidth - wide.clientWidth;
  seen.complaints = complaints;
  const found = document.createElement("script");
  found.type = "application/json";
  found.id = "seen";
  found.textContent = JSON.stringify(seen).replaceAll("<", "\\\\u003c");
  document.body.append(found);
}, 0));
</script>
"""

passed = failed = 0


def check(right, what):
    global passed, failed
    if right:
        passed += 1
    else:
        failed += 1
    print(f"{'ok' if right else 'not ok'} - {what}", flush=True)


def browser():
    for name in BROWSERS:
        if shutil.which(name):
            return name
    sys.exit(f"none of {', '.join(BROWSERS)} is there: make test-deps")


def browse(*arguments):
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--enable-logging=stderr", "--window-size=1300,2400", "--virtual-time-budget=5000",
               *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    console = [line for line in done.stderr.split("\n") if "CONSOLE" in line]
    return done.stdout, console


def look(page):
    """What the probe saw in the page, and what the page said on its console."""
    with open(page) as file:
        text = file.read()
    probed = page.removesuffix(".html") + ".probed.html"
    # Before the page's own scripts, so that it hears of their errors.
    with open(probed, "w") as file:
        file.write(text.replace("</head>", PROBE + "</head>"))
    dom, console = browse("--dump-dom", "file://" + probed)
    found = re.search(r'<script type="application/json" id="seen">(.*?)</script>', dom, re.S)
    if not found:
        sys.exit(f"the probe of {page} saw nothing:\n" + "\n".join(console) + dom[-2000:])
    return json.loads(found.group(1)), console


def bench(*words):
    command = [os.path.join(BIN, "rdmacc_bench"), *words, "--memory=256", "-P0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def report(*words):
    subprocess.run([os.path.join(BIN, "rdmacc_report"), *words], timeout=LIMIT_S, check=True)


def look_at_charts(name, page, expected):
    """`expected`: section and title of each chart."""
    seen, console = look(page)
    check(console == [] and seen["complaints"] == [],
          f"{name}: nothing on the console {console + seen['complaints'] or ''}")
    check(seen["requests"] == [], f"{name}: no requests {seen['requests'] or ''}")
    check(seen["overflow"] <= 0 and seen["cut"] <= 0,
          f"{name}: page and table are no wider than the window")
    titles = [(chart["section"], chart["title"]) for chart in seen["charts"]]
    check(titles == expected, f"{name}: the charts {'' if titles == expected else titles}")
    for chart in seen["charts"]:
        what = f"{name}: {chart['section']}, {chart['title']}"
        drawn = chart["sets"] > 0 and min(chart["points"]) > 0 and chart["coloured"] > 50
        check(drawn, f"{what}: drawn {'' if drawn else chart}")
        check(chart["height"] > 20 and chart["width"] > 200, f"{what}: has room")
        check(all(chart["axes"]) and chart["axes"], f"{what}: names its axes")
    return seen


DISTRIBUTION = [("Latency distribution", "Latency by percentile"),
                ("Latency distribution", "Latency histogram")]
OVER_TIME = [("Over time", "Throughput"), ("Over time", "Latency")]
COMPARISON = [("Comparison", "Throughput"), ("Comparison", "Latency")]
BREAKDOWN = [("Where time and attempts go", title) for title in
             ("Time of the stages", "Shares of the stages", "Aborted attempts by reason")]


def by(parameter):
    return [("By " + parameter, title) for title in
            ("Throughput", "Latency, 99th percentile", "Aborted attempts")]


def one_run(folder):
    page = os.path.join(folder, "one.html")
    printed = bench("smallbank", "--records=500", "--hot-records=5", "--hot-access=80", "-T3",
                    "--protocol=nowait", "--stages=lock=rpc", "-R300000", "-L100", f"--report={page}",
                    "--format=json")
    run = json.loads(printed)
    seen = look_at_charts("one run", page, OVER_TIME + DISTRIBUTION + BREAKDOWN)
    for shown in (f"{run['committed_per_second']:,.0f}", run["command"], run["started"],
                  run["host"]["kernel"], "scheduled start", "Chart.js", "MIT License"):
        check(shown in seen["text"], f"one run: says {shown}")


def sweep(folder):
    page = os.path.join(folder, "sweep.html")
    bench("ycsb", "--fabric=sim", "-T0.004", "--records=300", "--writes=50",
          "--sweep=coroutines:1,4,16", "--protocol=nowait,occ,mvcc,sundial", f"--report={page}")
    seen = look_at_charts("sweep", page,
                          by("coroutines") + COMPARISON + DISTRIBUTION + BREAKDOWN)
    check(seen["rows"] == 12, "sweep: a row for each of 12 points")
    check(seen["charts"][0]["sets"] == 4, "sweep: a curve for each protocol")
    curves = next(i for i, chart in enumerate(seen["charts"])
                  if chart["title"] == "Latency by percentile")
    check((seen["charts"][curves]["sets"], seen["afterClick"][curves]["sets"]) == (8, 7),
          "sweep: a box takes a curve away")
    check("the simulator, in virtual time" in seen["text"], "sweep: says that time is virtual")


def others(folder):
    """What other programs measure has less to show, and text that is no markup."""
    runs = [{"workload": "smallbank", "name": f"</script><b>{way}</b>",
             "committed_per_second": rate, "session_cpu_us": 30 + rate / 1000}
            for way, rate in (("heap", 30000), ("rdmacc", 45000))]
    source, page = (os.path.join(folder, "others." + kind) for kind in ("json", "html"))
    with open(source, "w") as file:
        json.dump(runs, file)
    report(source, "-o", page, "--title", "Others & <these>")
    seen = look_at_charts("others", page, [("Comparison", "Throughput"), ("Comparison", "Cost")])
    check("</script><b>heap</b>" in seen["text"], "others: names are text")
    check("Others & <these>" in seen["text"], "others: the title is text")


def screenshots(folder):
    for name in ("one", "sweep", "others"):
        path = os.path.join(folder, name)
        browse(f"--screenshot={path}.png", f"file://{path}.html")


def main():
    parser = argparse.ArgumentParser(description="pages of reports in a headless browser")
    parser.add_argument("--keep", metavar="FOLDER", help="where pages and screenshots stay")
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rdmacc-pages-") as folder:
        for test in (one_run, sweep, others):
            test(folder)
        if flags.keep:
            screenshots(folder)
            shutil.copytree(folder, flags.keep, dirs_exist_ok=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
