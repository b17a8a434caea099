"""The coordinate check of modules: against microsoft/mup on the same modules, against the exponents
of yang2022, and against its own advice.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.testing import assert_allclose
from torch import nn

import wideflow as wf

from .coordinate_modules import BASE, CASES, WIDTHS, Net, batch, plain

# slopes of log(mean |h|) on log(width) before steps 0..3, from microsoft/mup 1.0.0
# (benchmarks/peers/coordinates_mup.py)
MUP = {
    ("plain SGD", "first"): [-0.005214, -0.005168, -0.005193, -0.005276],
    ("plain SGD", "last"): [-0.023522, 0.120248, 0.295677, 0.416509],
    ("plain SGD", "second"): [-0.038764, -0.03786, -0.035512, -0.032381],
    ("plain Adam", "first"): [-0.005214, -0.003937, -0.010632, -0.019371],
    ("plain Adam", "last"): [-0.023522, 1.026655, 0.938376, 0.872968],
    ("plain Adam", "second"): [-0.038764, 0.214074, 0.337436, 0.392263],
    ("maximal SGD", "first"): [-0.005214, -0.005159, -0.005149, -0.005147],
    ("maximal SGD", "last"): [-0.523522, -0.467613, -0.391228, -0.318678],
    ("maximal SGD", "second"): [-0.038764, -0.03804, -0.037424, -0.036821],
    ("maximal Adam", "first"): [-0.005214, -0.003823, -0.004105, -0.004798],
    ("maximal Adam", "last"): [-0.523522, -0.198954, -0.114132, -0.093768],
    ("maximal Adam", "second"): [-0.038764, -0.033006, -0.024017, -0.018841],
}
# exponents of (start, rate) from plain to maximal update: yang2022, Table 3
TABLE3 = {
    "plain SGD": {"first.weight": (0, 1), "second.weight": (0, 0), "last.weight": (-0.5, -1)},
    "plain Adam": {"first.weight": (0, 0), "second.weight": (0, -1), "last.weight": (-0.5, -1)},
    "maximal SGD": dict.fromkeys(("first.weight", "second.weight", "last.weight"), (0, 0)),
    "maximal Adam": dict.fromkeys(("first.weight", "second.weight", "last.weight"), (0, 0)),
}


@pytest.fixture(scope="module")
def checks():
    inputs, classes = batch()
    return {
        name: wf.coordinate_check(
            case.build,
            WIDTHS,
            inputs,
            classes,
            optimiser=case.optimiser,
            loss=F.cross_entropy,
            seeds=1,
        )
        for name, case in CASES.items()
    }


@pytest.mark.parametrize(("case", "layer"), list(MUP))
def test_slopes_are_those_of_mup(checks, case, layer):
    check = checks[case]
    slopes = [check.size_slopes(step)[layer] for step in range(4)]
    assert_allclose(slopes, MUP[case, layer], atol=1e-4)  # asked are 0.05; the modules are the same


WIDE = (64, 256, 1024)  # exponents are limits: few inputs and wide networks are near them


def few():
    inputs, classes = batch()
    return inputs[:4], classes[:4]


@pytest.mark.parametrize("case", list(CASES))
def test_the_mending_exponents_lead_to_maximal_update(case):
    build, optimiser = CASES[case].build, CASES[case].optimiser
    scalings = wf.coordinate_check(
        build, WIDE, *few(), optimiser=optimiser, loss=F.cross_entropy, seeds=1, steps=1
    ).scalings
    for name, expected in TABLE3[case].items():
        assert scalings[name].mending == expected, scalings[name]
        assert ("maximal update" in scalings[name].verdict) == (expected == (0, 0))
    roles = {name: scaling.role for name, scaling in scalings.items()}
    assert roles == {
        "first.weight": "input",
        "first.bias": "vector",
        "second.weight": "hidden",
        "second.bias": "vector",
        "last.weight": "output",
    }


def test_a_network_mended_as_advised_moves_at_every_width():
    """The advice for plain SGD, followed: afterwards nothing is to mend, and outputs move by about
    as much at every width.
    """
    inputs, classes = few()
    advice = {name: exponents for name, exponents in TABLE3["plain SGD"].items()}

    def mended(width: int) -> Net:
        net, ratio = plain(width), width / BASE
        with torch.no_grad():
            for name, parameter in net.named_parameters():
                parameter.mul_(ratio ** advice.get(name, (0, 1))[0])
        return net

    def optimiser(net: Net):
        ratio = net.second.weight.shape[0] / BASE
        return torch.optim.SGD(
            [
                {"params": [p], "lr": 0.1 * ratio ** advice.get(name, (0, 1))[1]}
                for name, p in net.named_parameters()
            ]
        )

    check = wf.coordinate_check(
        mended, WIDE, inputs, classes, optimiser=optimiser, loss=F.cross_entropy, seeds=1
    )
    for name in TABLE3["plain SGD"]:
        assert check.scalings[name].mending == (0, 0), check.scalings[name]
    for layer in ("first", "second", "outputs"):
        assert abs(check.slopes[layer]) < 0.2, check  # 1/2 and 1 before


def test_numbers_of_one_layer_by_hand():
    # f = w x with one SGD step at rate r on half the mean square of f - y = -1 for x = 1 and w = 0:
    # w becomes r, and so does f
    build = lambda width: _zeroed(nn.Linear(1, width, bias=False))
    check = wf.coordinate_check(
        build, (2, 4), [[1.0]], [[1.0, 1.0]], rate=0.25, steps=1, seeds=1, loss=_first_two
    )
    assert_allclose(check.updates["outputs"], [0.25, 0.25 / math.sqrt(2)], rtol=1e-6)
    assert_allclose(check.sizes["outputs"], [[0, 0.25], [0, 0.125]], rtol=1e-6)
    assert check.rate == 0.25


def _zeroed(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    return layer


def _first_two(outputs, targets):
    return torch.sum((outputs[:, :2] - targets) ** 2) / 2


def test_the_users_random_numbers_stay_where_they_were():
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    wf.coordinate_check(
        lambda width: nn.Linear(2, width),
        (2, 3),
        np.eye(2),
        np.ones((2, 2)),
        seeds=1,
        loss=_first_two,
    )
    assert torch.equal(torch.randn(3), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"constructor": lambda width: "net"}, "`constructor` must be a function"),
        ({"optimiser": lambda module: 3}, "`optimiser` must be a class"),
        ({"dynamics": 3}, "`dynamics` and `activations` are for functions of JAX"),
        ({"loss": 5}, "`loss` must be a function"),
        ({"targets": np.array([0, 1])}, "for classes give `loss"),
        ({"key": "seven"}, "`key` must be a whole number"),
        ({"constructor": lambda width: nn.LazyLinear(width)}, "lazy parameters"),
        ({"constructor": lambda width: nn.Linear(2, width).half()}, "float16"),
        ({"inputs": torch.eye(2, device="meta")}, "device"),
    ],
)
def test_wrong_input_is_named(change, message):
    given = {
        "constructor": lambda width: nn.Linear(2, width),
        "widths": (2, 4),
        "inputs": np.eye(2),
        "targets": np.ones((2, 2)),
        "seeds": 1,
    }
    with pytest.raises(ValueError, match=message):
        wf.coordinate_check(**(given | change))


def test_functions_of_jax_take_no_optimiser():
    with pytest.raises(ValueError, match="`optimiser` and `loss` are for modules"):
        wf.coordinate_check(
            lambda key, width: None, (2, 4), np.eye(2), np.ones(2), optimiser=torch.optim.SGD
        )
