"""What wideflow returns is float64 and stays so, whatever JAX's flag says.

Every example runs in a process of its own with the flag off, as a user's process begins, and then
with it on: the numbers agree, and with the flag off they come as NumPy arrays, so that a user's own
arithmetic keeps them in float64.
"""

import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest
from contracts.example_calls import EXAMPLES, METHODS, NO_EXAMPLE, PREAMBLE

import wideflow as wf

# right answers come from the same programs, compiled once; JAX keeps those of the other flag apart
RUNNER = """
import dataclasses, pickle, sys
class Own(wf.models.base.AbstractModel):
    w: jax.Array
    trained = ("w",)
    def __init__(self, key): self.w = jax.random.normal(key, (3,))
    def embed(self, inputs): return inputs
    def respond(self, features): return features @ self.w
    def rate_factors(self): return {"w": 1.0}
    def pullback(self, features): return wf.models.base.pullback_by_autodiff(self, features)

def flat(value):
    if dataclasses.is_dataclass(value) and not isinstance(value, (jax.Array, type)):
        return [leaf for f in dataclasses.fields(value) for leaf in flat(getattr(value, f.name))]
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in flat(value[name])]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]

def answer(call):
    try:
        leaves = [leaf for leaf in flat(eval(call)) if isinstance(leaf, (jax.Array, np.ndarray, np.generic, float))]
        return [(isinstance(leaf, jax.Array), np.asarray(leaf)) for leaf in leaves]
    except Exception as error:
        return f"{type(error).__name__}: {error}"

preamble, calls = pickle.load(open(sys.argv[1], "rb"))
answers = []
for flag in (False, True):
    jax.config.update("jax_enable_x64", flag)
    exec(preamble)
    answers.append({name: answer(call) for name, call in calls.items()})
pickle.dump(answers, open(sys.argv[2], "wb"))
"""

TESTS = pathlib.Path(__file__).parents[1]
QUICKLY = "from one_context import lower_in_one_context\nlower_in_one_context()\n"

PLACES = (
    "",
    "limits",
    "limits.hermite",
    "limits.radial",
    "observables",
    "data",
    "losses",
    "embeddings",
    "maps",
)


def _exported() -> set[str]:
    """The public functions of wideflow's public modules."""
    names = set()
    for place in PLACES:
        module = wf
        for part in filter(None, place.split(".")):
            module = getattr(module, part)
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name)
            home = str(getattr(inspect.unwrap(value), "__module__", "")) if callable(value) else ""
            if isinstance(value, type | types.ModuleType) or name.startswith(("_", "check_")):
                continue
            elsewhere = place == "limits.hermite" and home != module.__name__
            if (
                home.startswith("wideflow.")
                and not home.startswith("wideflow._core")
                and not elsewhere
            ):
                names.add(f"{place}.{name}".lstrip("."))
    return names


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("precision")
    (folder / "calls").write_bytes(pickle.dumps((PREAMBLE, {**EXAMPLES, **METHODS})))
    path = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            QUICKLY + PREAMBLE + RUNNER,
            str(folder / "calls"),
            str(folder / "answers"),
        ],
        env={**os.environ, "JAX_ENABLE_X64": "0", "PYTHONPATH": os.pathsep.join(path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return pickle.loads((folder / "answers").read_bytes())


def test_every_exported_function_has_an_example_or_a_reason():
    assert _exported() <= set(EXAMPLES) | set(NO_EXAMPLE), "new names need an example"


def test_no_example_is_of_something_that_is_gone():
    assert set(EXAMPLES) | set(NO_EXAMPLE) <= _exported()


@pytest.mark.parametrize("name", [*EXAMPLES, *METHODS])
def test_float64_with_the_flag_off_as_with_it_on(answers, name):
    off, on = (run[name] for run in answers)
    assert not isinstance(off, str), off
    assert not isinstance(on, str), on
    assert off, "nothing numerical came back"
    assert len(off) == len(on)
    for (is_jax, value), (_, expected) in zip(off, on, strict=True):
        assert not is_jax, "a JAX array would turn into float32 in a user's hands"
        assert value.dtype == expected.dtype
        assert value.dtype != np.float32
        np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-13)
