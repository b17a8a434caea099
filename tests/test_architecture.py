"""Folders import only what docs/architecture.md allows; `import wideflow` is light."""

import ast
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import wideflow as wf

PACKAGE = pathlib.Path(__file__).parents[1] / "src" / "wideflow"

NUMERICAL = {"_core", "data", "models", "dynamics", "training", "observables", "limits", "theorems"}
ALLOWED = {
    "_core": set(),
    "data": {"_core"},
    "models": {"_core"},
    "dynamics": {"_core", "data", "models"},
    "training": {"_core", "data", "models", "dynamics"},
    "observables": {"_core", "data", "models", "dynamics", "training"},
    "limits": {"_core"},
    "theorems": NUMERICAL,
    "papers": NUMERICAL | {"certify", "experiments", "figures"},
    "experiments": NUMERICAL | {"figures", "papers"},
    "runs": {"_core", "experiments", "figures", "papers", "training"},
    "report": {"_core", "experiments", "figures", "papers", "runs", "training"},
    "certify": NUMERICAL | {"figures", "papers", "probe"},
    "estimators": NUMERICAL | {"certify", "probe"},
    "phase": NUMERICAL | {"figures", "report", "runs"},
    "doctor": NUMERICAL | {"runs"},
    "torch": NUMERICAL | {"architecture", "coordinates", "figures", "probe"},
    "lab": NUMERICAL
    | {"certify", "experiments", "figures", "papers", "phase", "probe", "report", "runs"},
    "shell": NUMERICAL
    | {
        "certify",
        "doctor",
        "experiments",
        "figures",
        "lab",
        "papers",
        "phase",
        "probe",
        "report",
        "runs",
    },
}
IN_PAPERS = {  # inside a paper's folder limits and finite networks share no computation either
    "laws": {"_core"},
    "limits": {"_core", "limits"},
}
FILES = {  # single files that may import more, and why
    "runs/minimal_cli.py": {"report"},  # a shell of its own for compute nodes
    "theorems/judging.py": {"papers"},  # gathers the statements of all of them
}
HEAVY = {
    "matplotlib",
    "bokeh",
    "dask",
    "distributed",
    "panel",
    "h5netcdf",
    "h5py",
    "sklearn",
    "typer",
    "rich",
    "pooch",
    "jinja2",
    "IPython",
    "torch",
}
LIGHT = {
    "jax",
    "jaxlib",
    "equinox",
    "diffrax",
    "optax",
    "lineax",
    "matfree",
    "jaxtyping",
    "scipy",
    "numpy",
    "xarray",
    "pandas",
    "optimistix",  # which xarray and diffrax bring along
}


def sources() -> list[pathlib.Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: pathlib.Path, *, top_level_only: bool = False) -> list[tuple[str, ...]]:
    """Every import as a path of names from the package's root; others as ('', 'numpy', ...)."""
    tree = ast.parse(path.read_text())
    here = path.relative_to(PACKAGE).parts[:-1]
    found = []
    for node in tree.body if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [("", *alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found += [("", *(node.module or "").split("."))]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1]
            module = tuple((node.module or "").split(".")) if node.module else ()
            found += (
                [(*base, *module)] if (*base, *module) else [(alias.name,) for alias in node.names]
            )
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_folders_import_only_what_they_may(path):
    place = path.relative_to(PACKAGE)
    if len(place.parts) == 1:  # the package's own files gather the public names, or are the shell
        return
    folder = place.parts[0]
    allowed = ALLOWED.get(folder)
    assert allowed is not None, f"{folder} stands neither here nor in docs/architecture.md"
    allowed = allowed | {folder} | FILES.get(place.as_posix(), set())
    gathers = place.name == "__init__.py" or place.as_posix() == "data/populations.py"
    if gathers and folder in NUMERICAL:
        allowed = allowed | {"papers"}  # the grid's public names include the papers'
    for names in imported(path):
        if names[0] == "":
            assert names[1] != "wideflow", (
                f"{place} imports wideflow by its full name; write it relative"
            )
        else:
            assert names[0] in allowed, f"{place} imports {'.'.join(names)}"


@pytest.mark.parametrize(
    "path",
    [path for path in sources() if path.relative_to(PACKAGE).parts[:1] == ("papers",)],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_a_paper_imports_no_other_paper_and_its_limits_no_network(path):
    parts = path.relative_to(PACKAGE).parts
    if len(parts) < 3:
        return
    paper, part = parts[1], parts[2]
    for names in imported(path):
        if names[0] == "papers" and len(names) > 1:
            assert names[1] in (paper, "base"), f"{path} imports {'.'.join(names)}"
        if part in IN_PAPERS and names[0] not in ("", "papers"):
            assert names[0] in IN_PAPERS[part], f"{path} imports {'.'.join(names)}"
        if part in IN_PAPERS and names[:2] == ("papers", paper):
            assert names[2] in {"laws", part}, f"{path} imports {'.'.join(names)}"


@pytest.mark.parametrize("folder", sorted(NUMERICAL | {"experiments", "papers"}))
def test_numerical_folders_import_numerical_libraries_only(folder):
    standard = sys.stdlib_module_names
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        for names in imported(path, top_level_only=True):
            if names[0] == "":
                assert names[1] in standard | LIGHT, (
                    f"{path.relative_to(PACKAGE)} imports {names[1]} at its top"
                )


def test_every_folder_is_on_the_map():
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    folders = {
        path.parent.relative_to(PACKAGE).parts[0] for path in sources() if path.parent != PACKAGE
    }
    assert folders <= set(ALLOWED)
    for folder in folders:
        assert f"`{folder}/`" in page, f"docs/architecture.md does not mention {folder}/"


def modules_of(call) -> set[str]:
    """The modules of the package whose functions `call` goes through in this thread, tracing
    included.
    """
    root, visited = f"{pathlib.Path(wf.__file__).parent}{os.sep}", set()

    def visit(frame, event, _):
        called = event == "call" and frame.f_code.co_name != "<module>"  # which is an import
        if called and frame.f_code.co_filename.startswith(root):
            visited.add(frame.f_code.co_filename.removeprefix(root))

    before = sys.getprofile()
    sys.setprofile(visit)
    try:
        call()
    finally:
        sys.setprofile(before)
    modules = {pathlib.PurePath(path).as_posix() for path in visited if "__init__" not in path}
    return modules - {
        "_core/compile_time.py"
    }  # a clock that JAX calls where another test of this process has wound it


def path_on_the_page(*passes: str) -> list[str]:
    """The modules that the page names for these passes."""
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text()
    section = page.partition("## What one call of `train` goes through")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]
    return [module.strip("`") for module, *_, where in rows if where in passes]


# the bounds are those of the project's design; shapes that no other test has, so that nothing was
# traced before
@pytest.mark.parametrize(
    ("most", "dynamics", "activation", "passes"),
    [
        (12, wf.GradientDescent(0.1), "relu", ("all", "descent")),
        (20, wf.GradientFlow(), "relu", ("all", "flow", "kinked flow")),
        (20, wf.GradientFlow(), "tanh", ("all", "flow", "smooth flow")),
    ],
    ids=["descent", "kinked flow", "smooth flow"],
)
def test_a_pass_of_train_can_be_followed(most, dynamics, activation, passes):
    x = np.random.default_rng(0).normal(size=(11, 2))
    net = wf.Shallow.init(0, features=2, width=17, activation=activation)
    far = {"steps": 2} if isinstance(dynamics, wf.GradientDescent) else {"time": 0.1, "every": 0.1}
    data = wf.Dataset(x, np.sin(x[:, 0]))
    modules = modules_of(lambda: wf.train(net, data, dynamics, **far))
    assert modules == set(path_on_the_page(*passes))
    assert len(modules) <= most, sorted(modules)


MEASURE = """
import json, sys, time
began = time.process_time()
import jax, equinox, optax, jaxtyping, scipy.special, xarray
libraries = time.process_time() - began
began = time.process_time()
import wideflow
own = time.process_time() - began
print(json.dumps({"own": own, "libraries": libraries, "modules": sorted(sys.modules), "x64": jax.config.jax_enable_x64}))
"""


def test_importing_is_quick_and_needs_nothing_heavy():
    """wideflow's own share is at most half again that of the libraries it stands on, in processor
    time of one process.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True
    )
    measured = json.loads(done.stdout)
    assert HEAVY & {name.partition(".")[0] for name in measured["modules"]} == set()
    # solvers and integrals take longer to import than wideflow's own modules
    assert not {"diffrax", "optimistix", "scipy.integrate", "scipy.optimize", "scipy.stats"} & set(
        measured["modules"]
    )
    assert measured["x64"] is False  # the flag is the user's
    assert measured["own"] < 1.5 * measured["libraries"]


SPINNING = """
import importlib.abc, os, sys

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "scipy.linalg":
            print("SciPy's LAPACK is loaded with", os.environ.get("OPENBLAS_THREAD_TIMEOUT"))

sys.meta_path.insert(0, Watch())
import jax, wideflow
jax.numpy.linalg.eigh(jax.numpy.eye(3))
"""


@pytest.mark.parametrize(("given", "told"), [(None, "4"), ("20", "20")])
def test_threads_of_lapack_do_not_spin_unless_asked_to(given, told):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_THREAD_TIMEOUT"}
    environment |= {} if given is None else {"OPENBLAS_THREAD_TIMEOUT": given}
    done = subprocess.run(
        [sys.executable, "-c", SPINNING],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout.splitlines()[0] == f"SciPy's LAPACK is loaded with {told}"
