"""MkDocs hook: the API pages, one a folder, written from what each `__init__.py` exports
(`from .x import Y as Y`).

So a name is in the book the day it is exported. Nothing is imported: the sources are read.
"""

import ast
import pathlib

SOURCE = pathlib.Path(__file__).parents[1] / "src"
PAGES = {  # folder or module: what it holds; one page each, in this order
    "wideflow.data": "What networks are trained on: datasets, generators, files, exact "
    "populations.",
    "wideflow.models": "Networks, embeddings, exact maps between scalings, pruning.",
    "wideflow.training": "`train` and what it gives: runs, records, ensembles.",
    "wideflow.dynamics": "How models move: descent and flow, SGD, truncated, clipped and "
    "smoothed variants; the losses.",
    "wideflow.observables": "What is measured along a run.",
    "wideflow.limits": "Infinite-width objects: kernels, random Gram matrices, mean-field and "
    "reduced flows.",
    "wideflow.theorems": "One object a theorem or lemma: hypotheses, bound, verdict.",
    "wideflow.certify": "The theorems evaluated on the data and network at hand.",
    "wideflow.phase": "Planes of networks: which regime is best on given data.",
    "wideflow.estimators": "scikit-learn estimators.",
    "wideflow.torch": "Modules of PyTorch: a recorder for your own loop, a Lightning callback, "
    "conversion to architectures.",
    "wideflow.experiments": "What an experiment declares, how a figure is described, the registry.",
    "wideflow.runs": "Records, the store, sweeps.",
    "wideflow.report": "Figures as PNG and PDF, and the page.",
}
MODULES = {  # modules that are public without being exported by their folder
    "wideflow.models": ("base",),
    "wideflow.dynamics": ("base", "bounded_losses"),
    "wideflow.experiments": ("base", "registry", "installed"),
    "wideflow.report": ("static", "html"),
    "wideflow.runs": ("sweeps",),
}
BESIDE = {  # what the top level holds beside the folders: public modules, one section each
    "activations": "wideflow.activations",
    "architecture": "wideflow.architecture",
    "coordinate_check": "wideflow.coordinates",
    "embeddings": "wideflow.embeddings",
    "figures": "wideflow.figures",
    "losses": "wideflow.losses",
    "maps": "wideflow.maps",
    "mlp": "wideflow.architecture",
    "parametrisations": "wideflow.parametrisations",
    "populations": "wideflow.populations",
    "probe": "wideflow.probe",
    "scalings": "wideflow.scalings",
    "Status": "wideflow.Status",
}


def late() -> dict[str, str]:
    """Names of the top level that are imported on first use, and the module that holds each."""
    tree = ast.parse((SOURCE / "wideflow" / "__init__.py").read_text())
    table = next(
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_LATE"
    )
    return {name: f"wideflow.{module}" for name, module in ast.literal_eval(table).items()}


def homes() -> dict[str, str]:
    """The folder on whose page each public name of the top level is explained."""
    exports = {name: page for page in PAGES for name in exported(page)}
    return {name: _page(module) for name, module in late().items()} | exports


def unexported() -> dict[str, str]:
    """Names of the top level that no folder exports, by their full path: shown on the page of their
    folder.
    """
    tree = ast.parse((SOURCE / "wideflow" / "__init__.py").read_text())
    known = homes().keys() | BESIDE.keys()
    return {
        alias.name: f"wideflow.{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if alias.name not in known
    }


def _page(module: str) -> str:
    return ".".join(module.split(".")[:2])


def exported(package: str) -> dict[str, bool]:
    """Public names of a package, and whether each is a module."""
    path = SOURCE.joinpath(*package.split("."), "__init__.py")
    tree, names = ast.parse(path.read_text()), {}
    public = {
        constant.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for constant in ast.walk(node.value)
        if isinstance(constant, ast.Constant)
    }
    # names that come on demand are imported for the type checker alone
    nodes = [n for top in tree.body for n in (top.body if isinstance(top, ast.If) else [top])]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            modules = node.module is None or is_package(f"{package}.{node.module}")
            names |= {
                (a.asname or a.name): modules and is_module(f"{package}.{a.name}")
                for a in node.names
                if a.asname == a.name or (a.asname or a.name) in public
            }
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            names[node.name] = False
    return names


def is_module(path: str) -> bool:
    place = SOURCE.joinpath(*path.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def is_package(path: str) -> bool:
    return (SOURCE.joinpath(*path.split(".")) / "__init__.py").is_file()


def entries(package: str) -> list[str]:
    """The page's lines for a package: modules with all they hold, packages under a heading, other
    names one by one.
    """
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
    """The names of `import wideflow as wf`, each with a link to where it is explained, and the
    pages.
    """
    lines = [
        "# API",
        "",
        "`import wideflow as wf` gives these names:",
        "",
        "| name | is explained in |",
        "|---|---|",
    ]
    home, alone = homes(), unexported()
    for name in sorted({*exported("wideflow"), *late()}, key=str.lower):
        lines.append(f"| `wf.{name}` | {_where(name, home, alone)} |")
    lines += ["", "Every folder has a page:", "", "| page | holds |", "|---|---|"]
    lines += [f"| [{page}]({_file(page)}) | {about} |" for page, about in PAGES.items()]
    lines += ["", "## Beside the folders", ""]
    lines += [f"::: {module}" for module in dict.fromkeys(BESIDE.values())]
    return "\n".join(lines) + "\n"


def _where(name: str, home: dict[str, str], alone: dict[str, str]) -> str:
    """A link to the heading that explains a name of the top level."""
    if name in BESIDE:
        return f"[{BESIDE[name]}](#{BESIDE[name]})"
    if f"wideflow.{name}" in PAGES:
        return f"[wideflow.{name}]({_file(f'wideflow.{name}')})"
    path = alone.get(name) or f"{late().get(name) or home[name]}.{name}"
    if name in home and name in exported(home[name]):
        path = f"{home[name]}.{name}"
    return f"[{path}]({_file(_page(path))}#{path})"


def _file(page: str) -> str:
    return page.removeprefix("wideflow.") + ".md"


def on_files(files, config):
    """MkDocs: adds the pages."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "api/index.md", content=overview()))
    for page, about in PAGES.items():
        alone = [f"::: {path}" for path in unexported().values() if _page(path) == page]
        text = "\n".join([f"# {page}", "", about, "", *entries(page), *alone]) + "\n"
        files.append(File.generated(config, f"api/{_file(page)}", content=text))
    return files
