"""How long a visitor of the lab waits: from loading the page to its first picture, its first live
one and the first movement.

Run:  python benchmarks/lab_start.py [SCENE ...] [--cold] [--idle SECONDS]

A row is one page: seconds of the wall clock since the page was asked for, and the CPU seconds that
the server and its workers had used by then. Start is pressed as soon as the button is there.
`--cold` begins with an empty cache of compiled programs; `--idle` leaves the server alone for so
long before the page is opened, as a user does who reads the terminal first. Needs Chromium and
Playwright.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import psutil
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
STILL = (
    "() => { const i = document.querySelector('#empty img'); return i && i.complete && "
    "i.naturalWidth > 0; }"
)
LIVE = "() => window.lab && window.lab.messages.some(t => t.drawn)"
MOVED = "() => window.lab && window.lab.messages.some(t => t.drawn && t.step > 0)"
LIMIT = 300_000  # milliseconds


def used(process: psutil.Process) -> float:
    """CPU seconds of a process and its children."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.Error:  # it has just ended
            continue
        total += times.user + times.system
    return total


def measure(browser, scene: str, cache: str, idle: float) -> dict:
    """One server, one page."""
    command = [sys.executable, "-m", "wideflow", "lab", "--no-open"]
    began = time.perf_counter()
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_COMPILATION_CACHE_DIR": cache},
    )
    try:
        assert server.stdout is not None
        address = re.search(r"http\S+", server.stdout.readline())
        assert address is not None
        listening = time.perf_counter() - began
        time.sleep(idle)
        return {
            "scene": scene,
            "idle": idle,
            "listening": listening,
            **visit(browser, f"{address[0]}&scene={scene}", psutil.Process(server.pid)),
        }
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(20)


def visit(browser, address: str, server: psutil.Process) -> dict:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(LIMIT)
    row, began, before = {}, time.perf_counter(), used(server)

    def note(name: str) -> None:
        row[name] = time.perf_counter() - began
        row[f"{name}, CPU"] = used(server) - before

    page.goto(address, wait_until="commit")
    page.wait_for_function(STILL)
    note("still")
    page.wait_for_selector("body[data-connected]")
    page.click("#start")
    page.wait_for_function(LIVE)
    note("live")
    page.wait_for_function(MOVED)
    note("moved")
    context.close()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("scenes", nargs="*", default=["free"])
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--idle", type=float, default=0.0)
    options = parser.parse_args()
    cache = os.path.join(tempfile.gettempdir(), "wideflow-lab-start-cache")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scene in options.scenes:
            if options.cold:
                shutil.rmtree(cache, ignore_errors=True)
            row = measure(browser, scene, cache, options.idle)
            row["load"] = os.getloadavg()[0]
            print(
                json.dumps({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()}),
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main()
