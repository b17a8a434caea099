"""Tests run in 64 bit, with every annotated shape checked, on a JAX that keeps its compiled
programs.
"""

import gc
import itertools
import os
import pathlib
import shutil
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small spectra; threads only fight each other
# for this process and for those that tests start
os.environ.setdefault(
    "JAX_COMPILATION_CACHE_DIR", os.path.join(tempfile.gettempdir(), "wideflow-test-cache")
)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.02")
# processes that tests start would else compile wideflow's sources each anew, a third of a process's
# start
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# small problems: compiling takes longer than computing, and half as long without optimisations and
# by the older emitters
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1",
)

# a program's text names no line of the sources: a twentieth of the time
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax
import pytest
from jaxtyping import install_import_hook
from one_context import lower_in_one_context

jax.config.update("jax_enable_x64", True)
lower_in_one_context()


def pytest_configure(config):
    """Every annotated shape is checked. The process that only hands out tests to others needs no
    wideflow.
    """
    if hasattr(config, "workerinput") or config.getoption("dist", "no") == "no":
        with install_import_hook("wideflow", "beartype.beartype"):
            import wideflow as wideflow


def pytest_sessionfinish():
    """pytest looks for cycles five times at its end, which takes seconds after a whole run."""
    gc.freeze()


def pytest_collection_finish():
    """Python looks for cycles seldom, and not among what was imported: over a million objects it
    took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


MOST_MAPS = 38_000  # the kernel allows a process 65,530; each compiled program takes some


COUNT = itertools.count(1)


def pytest_runtest_teardown():
    """Drops compiled programs before their memory maps run out, which would end the process;
    looking takes tens of milliseconds.
    """
    maps = pathlib.Path("/proc/self/maps")
    if next(COUNT) % 20 == 0 and maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


# Under `--dist loadfile` a file's tests run in one process, which compiles their programs and
# sets up their fixtures once; the longest files begin.
FIRST = (
    "tests/experiments/test_contract.py",
    "tests/test_docs.py",
    "tests/contracts/",
    "tests/lab/",
    "tests/test_notebooks.py",
    "tests/sweeps/",
    "tests/test_book.py",
    "tests/estimators/",
    "tests/dynamics/",
    "tests/certify/",
)


def pytest_collection_modifyitems(items):
    place = lambda item: next(
        (k for k, name in enumerate(FIRST) if item.nodeid.startswith(name)), len(FIRST)
    )
    items.sort(key=place)


REPOSITORY = pathlib.Path(__file__).parents[1]


@pytest.fixture(scope="session")
def data_folder() -> pathlib.Path:
    """The folder with the real data files, or a skip that says where it was looked for."""
    tried = [os.environ.get("WIDEFLOW_DATA"), str(REPOSITORY.parent / "shared" / "data")]
    for place in tried:
        if place and (pathlib.Path(place) / "concrete.csv").is_file():
            os.environ["WIDEFLOW_DATA"] = place
            return pathlib.Path(place)
    pytest.skip(
        f"no real data files: WIDEFLOW_DATA is {tried[0]!r}, and the sibling shared/data has "
        "none either"
    )


FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    """Chromium, driven by Playwright, one for all tests of a process: its event loop runs in this
    thread until the end.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("chromium is not installed. Install it with: apt-get install chromium")
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()
