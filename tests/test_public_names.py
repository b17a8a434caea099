"""What users type exists, says what it takes, and what they never typed does not."""

import enum
import functools
import importlib
import inspect
import re
import types

import pytest

import wideflow as wf


@pytest.mark.parametrize("name", wf.__all__)
def test_every_exported_name_exists_and_says_what_it_is(name):
    thing = getattr(wf, name)
    assert inspect.getdoc(thing), f"wf.{name} has no docstring"


def test_completion_offers_every_exported_name():
    assert set(wf.__all__) <= set(dir(wf))


CHECKER = {"jaxtyping", "beartype"}  # put there by the type checker of the tests
FACADES = (
    "activations",
    "architecture",
    "embeddings",
    "losses",
    "maps",
    "parametrisations",
    "populations",
    "scalings",
)


@pytest.mark.parametrize("name", FACADES)
def test_modules_show_their_own_names_alone(name):
    module = getattr(wf, name)
    seen = {n for n in vars(module) if not n.startswith("_")} - CHECKER
    assert seen == set(module.__all__)


@pytest.mark.parametrize("name", ["coordinates", "figures", "probe"])
def test_completion_of_a_module_shows_its_own_names_alone(name):
    module = importlib.import_module(f"wideflow.{name}")
    assert dir(module) == sorted(module.__all__)


def _modules(package):
    """Modules that are attributes of a package; packages inside it gather names and list none
    themselves.
    """
    values = [v for n, v in vars(package).items() if not n.startswith("_")]
    modules = [v for v in values if isinstance(v, types.ModuleType)]
    return [m for m in modules if m.__name__.startswith("wideflow.") and not hasattr(m, "__path__")]


@pytest.mark.parametrize("folder", ["data", "limits", "models", "observables"])
def test_modules_reached_by_attribute_list_names_of_their_own(folder):
    for module in _modules(getattr(wf, folder)):
        assert hasattr(module, "__all__"), f"{module.__name__} lists no names"
        homes = {n: getattr(getattr(module, n), "__module__", "wideflow") for n in module.__all__}
        strangers = [n for n, home in homes.items() if not home.startswith("wideflow")]
        helpers = [n for n, home in homes.items() if home.startswith("wideflow._core")]
        assert not strangers + helpers, f"{module.__name__} lists what it only imports"


def test_no_foreign_module_is_an_attribute():
    modules = {n for n, v in vars(wf).items() if isinstance(v, types.ModuleType)} - CHECKER
    assert all(getattr(wf, n).__name__.startswith("wideflow") for n in modules if n[0] != "_")


@pytest.mark.parametrize("name", ["certify", "phase", "probe"])
def test_names_that_are_called_are_modules_too(name):
    module = __import__(f"wideflow.{name}", fromlist=["_"])
    assert isinstance(module, types.ModuleType)
    assert module is getattr(wf, name)
    assert callable(module)
    assert inspect.signature(module) == inspect.signature(getattr(module, name))


OF_EVERY_OBSERVABLE = {"name", "label", "axes"}
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _exported(module, path, visited):
    """All public callables that users reach from `module`, each once, with the path that they
    type.
    """
    gathers = hasattr(module, "__path__")
    names = getattr(module, "__all__", vars(module) if gathers else ())
    for name in sorted(n for n in names if not n.startswith("_")):
        try:
            value = getattr(module, name)
        except (
            ModuleNotFoundError
        ):  # what an optional library brings is walked where it is installed
            continue
        ours = (
            value if isinstance(value, types.ModuleType) else inspect.getmodule(value)
        ) or module
        if id(value) in visited or not ours.__name__.startswith("wideflow"):
            continue
        visited.add(id(value))
        if isinstance(value, types.ModuleType):
            yield from _exported(value, f"{path}.{name}", visited)
        elif callable(value):
            yield f"{path}.{name}", value


def _arguments(thing):
    """Parameters that need a word: all but the random key, variadic ones, and what every observable
    has.
    """
    if isinstance(thing, type) and issubclass(thing, enum.Enum | Exception):
        return []
    observable = isinstance(thing, type) and issubclass(thing, wf.AbstractObservable)
    known = {"key"} | (OF_EVERY_OBSERVABLE if observable else set())
    parameters = inspect.signature(thing).parameters.values()
    return [p.name for p in parameters if p.kind not in VARIADIC and p.name not in known]


def _explanation(thing) -> str:
    """The docstring, with that of `__init__`, and that of the class whose parameters it says it
    shares.
    """
    text = inspect.getdoc(thing) or ""
    if isinstance(thing, type) and "__init__" in vars(thing):
        text += "\n" + (inspect.getdoc(thing.__init__) or "")
    shared = re.search(r"Parameters.* are those of `(\w+)`", text)
    return text + (_explanation(getattr(wf, shared[1])) if shared else "")


def _is_explained(name: str, text: str) -> bool:
    """Whether an entry of `Args` or `Attributes`, a word in backticks or a symbol of a formula is
    the argument.
    """
    entry = rf"(^\s+|\. )(\w+, )*{name}(, \w+)*: "
    symbol = rf"(?<![A-Za-z\\]){name}(?![A-Za-z])" if len(name) == 1 else rf"\\{name}(?![A-Za-z])"
    formulas = re.findall(r"\$\$?(.+?)\$\$?", text, re.DOTALL)
    return bool(
        re.search(entry, text, re.MULTILINE)
        or re.search(rf"`{name}\b[^`]*`", text)
        or any(re.search(symbol, formula) for formula in formulas)
    )


def _ways_to_call(path, thing):
    """The callable with its docstring; of a class also its other constructors, and how a theorem is
    asked.
    """
    yield path, thing, _explanation(thing)
    for name, member in vars(thing).items() if isinstance(thing, type) else ():
        method = getattr(thing, name)
        if isinstance(member, classmethod) and not name.startswith("_"):
            yield f"{path}.{name}", method, inspect.getdoc(method) or ""
        if name == "__call__" and issubclass(thing, wf.AbstractTheorem):
            asked = functools.partial(method, None)  # without `self`
            yield f"{path}()", asked, _explanation(thing) + (inspect.getdoc(method) or "")


def test_every_exported_callable_explains_its_arguments():
    missing = {
        path: [name for name in _arguments(call) if not _is_explained(name, text)]
        for place, thing in _exported(wf, "wf", set())
        for path, call, text in _ways_to_call(place, thing)
    }
    assert len(missing) > 700, "the walk has lost its way"
    assert not {path: names for path, names in missing.items() if names}
