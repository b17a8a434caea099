"""What users type exists, and what they never typed does not."""

import inspect
import types

import pytest

import wideflow as wf


@pytest.mark.parametrize("name", wf.__all__)
def test_every_exported_name_exists_and_says_what_it_is(name):
    thing = getattr(wf, name)
    assert inspect.getdoc(thing), f"wf.{name} has no docstring"


CHECKER = {"jaxtyping", "beartype"}  # put there by the type checker of the tests
FACADES = ("activations", "embeddings", "losses", "maps", "populations", "scalings")


@pytest.mark.parametrize("name", FACADES)
def test_modules_show_their_own_names_alone(name):
    module = getattr(wf, name)
    seen = {n for n in vars(module) if not n.startswith("_")} - CHECKER
    assert seen == set(module.__all__)


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
