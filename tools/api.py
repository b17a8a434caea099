"""MkDocs hook: the API pages, one a folder, written from what each `__init__.py` exports (`from .x import Y as Y`).

So a name is in the book the day it is exported. Nothing is imported: the sources are read.
"""

import ast
import pathlib

SOURCE = pathlib.Path(__file__).parents[1] / "src"
PAGES = {  # folder or module: what it holds; one page each, in this order
    "wideflow.data": "What networks are trained on: datasets, generators, files, exact populations.",
    "wideflow.models": "Networks, embeddings, exact maps between scalings, pruning.",
    "wideflow.training": "`train` and what it gives: runs, records, ensembles.",
    "wideflow.dynamics": "How models move: descent and flow, SGD, truncated, clipped and smoothed variants; the losses.",
    "wideflow.observables": "What is measured along a run.",
    "wideflow.limits": "Infinite-width objects: kernels, random Gram matrices, mean-field and reduced flows.",
    "wideflow.theorems": "One object a theorem or lemma: hypotheses, bound, verdict.",
    "wideflow.certify": "The theorems evaluated on the data and network at hand.",
    "wideflow.phase": "Planes of networks: which regime is best on given data.",
    "wideflow.estimators": "scikit-learn estimators.",
    "wideflow.experiments": "What an experiment declares, how a figure is described, the registry.",
    "wideflow.runs": "Records, the store, sweeps.",
    "wideflow.report": "Figures as PNG and PDF, and the page.",
}
MODULES = {  # modules that are public without being exported by their folder
    "wideflow.data": ("populations",),
    "wideflow.models": ("base",),
    "wideflow.dynamics": ("base", "losses", "bounded_losses"),
    "wideflow.experiments": ("base", "registry", "installed"),
    "wideflow.report": ("static", "html"),
    "wideflow.runs": ("sweeps",),
}
LATE = {
    "WideRegressor": "wideflow.estimators",
    "WideClassifier": "wideflow.estimators",
    "save_figure": "wideflow.report",
    "sweep": "wideflow.runs.sweeps",
}
BESIDE = {
    "probe": "wideflow.probe",
    "coordinate_check": "wideflow.coordinates",
    "figures": "wideflow.figures",
}
CORE = {"activations": "wideflow._core.activations", "architecture": "wideflow._core.architecture", "mlp": "wideflow._core.architecture", "parametrisations": "wideflow._core.parametrisations", "scalings": "wideflow._core.scalings", "Status": "wideflow._core.status"}  # fmt: skip


def exported(package: str) -> dict[str, bool]:
    """Public names of a package, and whether each is a module."""
    path = SOURCE.joinpath(*package.split("."), "__init__.py")
    tree, found = ast.parse(path.read_text()), {}
    public = {
        constant.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant)
    }
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            modules = node.module is None or is_package(f"{package}.{node.module}")
            found |= {
                (a.asname or a.name): modules and is_module(f"{package}.{a.name}")
                for a in node.names
                if a.asname == a.name or (a.asname or a.name) in public
            }
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            found[node.name] = False
    return found


def is_module(path: str) -> bool:
    place = SOURCE.joinpath(*path.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def is_package(path: str) -> bool:
    return (SOURCE.joinpath(*path.split(".")) / "__init__.py").is_file()


def entries(package: str) -> list[str]:
    """The page's lines for a package: modules with all they hold, packages under a heading, other names one by one."""
    names = exported(package)
    lines = [f"::: {package}.{name}" for name, module in names.items() if not module]
    modules = [name for name, module in names.items() if module] + list(MODULES.get(package, ()))
    modules = [f"{package}.{name}" for name in modules]
    for module in modules:
        if is_package(module):
            lines += ["", f"## {module}", "", *(entries(module))]
        else:
            lines.append(f"::: {module}")
    return lines


def overview() -> str:
    """The names of `import wideflow as wf`, each with a link to where it is explained, and the pages."""
    home = (
        {name: page for page in PAGES for name in exported(page)}
        | LATE
        | {"losses": "wideflow.dynamics"}
    )
    lines = [
        "# API",
        "",
        "`import wideflow as wf` gives these names:",
        "",
        "| name | is explained in |",
        "|---|---|",
    ]
    for name in sorted({*exported("wideflow"), *LATE}, key=str.lower):
        lines.append(f"| `wf.{name}` | {_where(name, home)} |")
    lines += ["", "Every folder has a page:", "", "| page | holds |", "|---|---|"]
    lines += [f"| [{page}]({_file(page)}) | {about} |" for page, about in PAGES.items()]
    lines += ["", "## Beside the folders", ""]
    beside = dict.fromkeys((*BESIDE.values(), *CORE.values()))  # one module may hold two names
    lines += [f"::: {module}" for module in beside]
    return "\n".join(lines) + "\n"


def _where(name: str, home: dict[str, str]) -> str:
    if name in BESIDE or name in CORE:
        module = (BESIDE | CORE)[name]
        return f"[{module}](#{module})"
    if f"wideflow.{name}" in PAGES:
        return f"[wideflow.{name}]({_file(f'wideflow.{name}')})"
    folder = home.get(name)
    if folder is None:
        module = next(p for p in PAGES if is_module(f"{p}.{name}"))
        return f"[{module}.{name}]({_file(module)}#{module}.{name})"
    page = ".".join(folder.split(".")[:2])
    return f"[{folder}.{name}]({_file(page)}#{folder}.{name})"


def _file(page: str) -> str:
    return page.removeprefix("wideflow.") + ".md"


def on_files(files, config):
    """MkDocs: adds the pages."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "api/index.md", content=overview()))
    for page, about in PAGES.items():
        text = "\n".join([f"# {page}", "", about, "", *entries(page)]) + "\n"
        files.append(File.generated(config, f"api/{_file(page)}", content=text))
    return files
