"""Half an hour of running: neither the server, nor its workers, nor the page grow. `WIDEFLOW_SOAK`
sets other seconds.
"""

import os
import pathlib
import time

import numpy as np
import pytest

SECONDS = float(os.environ.get("WIDEFLOW_SOAK", "1800"))
ASKED = "data=wave-1d&samples=20&width=200&dynamics=descent&rate=1&steps=4000&seed=0"
MEGABYTE = 2**20


def resident(pid: int) -> float:
    """Memory of a process in megabytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(
        float(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")
    )


@pytest.mark.slow
def test_memory_does_not_grow(open_page, server):
    page = open_page(ASKED)
    page.tab.select_option("#pace", "fast")
    began, seen = time.monotonic(), []
    while time.monotonic() - began < SECONDS:
        page.tab.click("#start")
        page.wait("document.getElementById('state').textContent === 'running'")
        page.state("finished", seconds=120)
        heap = page.tab.evaluate("performance.memory.usedJSHeapSize") / MEGABYTE
        workers = server.workers()
        seen.append(
            (
                time.monotonic() - began,
                resident(server.process.pid),
                heap,
                len(workers),
                max(map(resident, workers)),
            )
        )
        print(
            f"{seen[-1][0]:6.0f} s  server {seen[-1][1]:.0f}  page {heap:.0f}  workers "
            f"{len(workers)}, largest {seen[-1][4]:.0f} MB",
            flush=True,
        )
    seen = np.array(seen)
    assert len(seen) > 6
    assert seen[:, 3].max() <= 3  # the run, the spare, and one that is just ending
    early, late = seen[len(seen) // 3 : len(seen) // 2], seen[-len(seen) // 6 :]
    for column, name in ((1, "server"), (2, "page"), (4, "largest worker")):
        before, after = np.median(early[:, column]), np.median(late[:, column])
        assert after < 1.1 * before + 25, f"{name} grew from {before:.0f} to {after:.0f} MB"
