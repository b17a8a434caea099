"""Every argument of everything exported, given what it can never be, ends in a sentence.

The examples of `example_calls` and `example_constructions` are the calls; in each, one argument at
a time, also those left at their defaults, is replaced. So a new export is tested the day its
example is written. The calls run as a user types them, with JAX's flag for 64 bit off.
"""

import json
import subprocess
import sys
import types

import pytest
from contracts import example_calls, example_constructions
from contracts.example_constructions import CONSTRUCTIONS, NO_CONSTRUCTION

import wideflow as wf

# functions whose examples take seconds even where the argument is refused
SLOW = ("coordinate_check",)

# parameters that take anything, everywhere or of one call
ANYTHING = {
    "params": "parameters of a function are a tree of any kind",
    "network": "a function, a module or a pair",
    "part": "the name of a draw",
    "name": "free text",
    "label": "free text",
    "axis": "free text",
    "text": "free text",
    "note": "free text",
    "title": "free text",
    "group": "free text",
    "caption": "free text",
    "figures.Panel.x": "the label of an axis",
    "figures.Panel.y": "the label of an axis",
}

RUNNER = """
import ast, inspect, json, linecache, sys
ALIASES = {"L": "limits", "H": "limits.hermite", "obs": "observables", "arch": "architecture",
    "P": "populations", "figures": "figures"}
WRONG = {"an object": object(), "text": "no such thing", "a class": wf.Shallow, "a complex number": 1j,
    "a dictionary": {"no": 1}, "ragged rows": [[1.0, 2.0], [3.0]]}
names = globals()

def dotted(node):
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    if isinstance(node, ast.Name):
        return "wf" if node.id == "wf" else f"wf.{ALIASES[node.id]}" if node.id in ALIASES else None
    return None

def replaced(name, call):
    tree = ast.parse(call, mode="eval")
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    node = next(n for n in nodes if dotted(n.func) == f"wf.{name}")
    if any(isinstance(a, ast.Starred) for a in node.args):
        return
    function = eval(compile(ast.Expression(node.func), "", "eval"), names)
    parameters = [p for p in inspect.signature(function).parameters.values()]
    given = {p.name: i for i, p in enumerate(parameters[: len(node.args)])}
    keywords = {k.arg: k for k in node.keywords}
    for p in parameters:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        for what, value in WRONG.items():
            names["WRONG_"] = value
            wrong = ast.Name("WRONG_", ast.Load())
            args, kwargs = list(node.args), [k for k in node.keywords if k.arg != p.name]
            if p.name in given:
                args[given[p.name]] = wrong
            else:
                kwargs.append(ast.keyword(p.name, wrong))
            node.args, old_args = args, node.args
            node.keywords, old = kwargs, node.keywords
            code = compile(ast.fix_missing_locations(ast.Expression(tree.body)), "", "eval")
            node.args, node.keywords = old_args, old
            yield p.name, what, code

def classified(code):
    try:
        return "accepted", repr(eval(code, names))[:80], ""
    except Exception as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        file = trace.tb_frame.f_code.co_filename
        ours = "wideflow" in file and linecache.getline(file, trace.tb_lineno).strip().startswith("raise")
        sentence = ours and type(error) in (ValueError, TypeError) and "`" in str(error)
        return "sentence" if sentence else "deep", f"{type(error).__name__}: {error}"[:200], file

for name, call in json.loads(sys.stdin.read()).items():
    answers = [(p, what, *classified(code)) for p, what, code in replaced(name, call)]
    print(json.dumps([name, answers]), flush=True)
"""

CALLS = {
    name: call
    for name, call in (example_calls.EXAMPLES | CONSTRUCTIONS).items()
    if name not in SLOW
}


def _exported_classes() -> set[str]:
    places = (
        "",
        "observables",
        "architecture",
        "parametrisations",
        "scalings",
        "populations",
        "embeddings",
        "figures",
    )
    names = set()
    for place in places:
        module = getattr(wf, place) if place else wf
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name)
            ours = getattr(value, "__module__", "").startswith("wideflow")
            if not isinstance(value, type) or isinstance(value, types.ModuleType) or not ours:
                continue
            if not name.startswith(("Abstract", "_")) and value.__name__ == name:
                names.add(f"{place}.{name}".lstrip("."))
    return names


def test_every_exported_class_has_a_construction_or_a_reason():
    assert _exported_classes() == set(CONSTRUCTIONS) | set(NO_CONSTRUCTION)


@pytest.fixture(scope="module")
def answers():
    preamble = example_calls.PREAMBLE + example_constructions.PREAMBLE
    done = subprocess.run(
        [sys.executable, "-c", preamble + RUNNER],
        input=json.dumps(CALLS),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(CALLS), f"ended after {lines[-1:]}: {done.stderr[-2000:]}"
    return dict(lines)


@pytest.mark.parametrize("name", CALLS)
def test_what_an_argument_can_never_be_ends_in_a_sentence(answers, name):
    wrong = [
        f"{parameter} = {what}: {kind} {message} [{where}]"
        for parameter, what, kind, message, where in answers[name]
        if kind == "deep"
        or (kind == "accepted" and not {parameter, f"{name}.{parameter}"} & set(ANYTHING))
    ]
    assert not wrong, "\n".join(wrong)
