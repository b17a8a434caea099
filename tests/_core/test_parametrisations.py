"""Factors, starts and rates layer by layer, against Table 8 of yang2022 and by hand."""

import pytest

import wideflow as wf
from wideflow._core.architecture import Activate, Chain, Conv, Dense, Flatten, Residual, mlp
from wideflow._core.parametrisations import MAXIMAL_UPDATE, MEAN_FIELD, NTK, STANDARD, layer_scales
from wideflow._core.scalings import ABC

N = 64


def weights(given, architecture, shape, name):
    return [getattr(weight, name) for weight, _ in layer_scales(architecture, shape, given)]


def test_ntk_is_the_description_itself():
    scales = layer_scales(mlp(2, N, weight_std=1.5, bias_std=0.3), (5,), NTK)
    assert [w.factor for w, _ in scales] == pytest.approx([1.5 * 5**-0.5, 1.5 / 8, 1.5 / 8])
    assert all(b.factor == pytest.approx(0.3) and b.rate == b.start == 1 for _, b in scales)
    assert all(w.rate == w.start == 1 for w, _ in scales)


def test_standard_has_plain_layers_and_one_rate():
    scales = layer_scales(mlp(2, N, weight_std=1.5, bias_std=0.3), (5,), STANDARD)
    assert all(w.factor == b.factor == 1 for w, b in scales)
    assert [w.start for w, _ in scales] == pytest.approx([1.5 * 5**-0.5, 1.5 / 8, 1.5 / 8])
    assert {x.rate for pair in scales for x in pair} == {1 / N}
    assert {x.adaptive_rate for pair in scales for x in pair} == {1 / N}
    plain = layer_scales(mlp(2, N), (5,), STANDARD.with_rate_exponent(0))
    assert {w.rate for w, _ in plain} == {1.0}


def test_adaptive_rates_are_those_of_table_8():
    # Table 8 of yang2022, brought to this form by its footnote: an entry of the effective matrix
    # n^-a w moves by 1 in the input layer, by 1/fan-in in hidden and output layers.
    factors = weights(MAXIMAL_UPDATE, mlp(3, N), (1,), "factor")
    rates = weights(MAXIMAL_UPDATE, mlp(3, N), (1,), "adaptive_rate")
    moves = [factor * rate for factor, rate in zip(factors, rates)]
    assert moves == pytest.approx([1, 1 / N, 1 / N, 1 / N])


@pytest.mark.parametrize("given", [NTK, STANDARD, MEAN_FIELD, MAXIMAL_UPDATE], ids=lambda p: p.name)
@pytest.mark.parametrize("shape", ["equal", "unequal"])
def test_shifts_keep_what_matters(given, shape):
    # W = factor w starts at factor x start and moves by factor^2 x rate (SGD), by factor x adaptive
    # rate (Adam)
    widths = (N, N) if shape == "equal" else (32, 128)
    net = Chain(
        Dense(widths[0], bias_std=1.0),
        Activate("tanh"),
        Dense(widths[1], bias_std=1.0),
        Activate("tanh"),
        Dense(1, bias_std=1.0),
    )
    for pair, other in zip(
        layer_scales(net, (5,), given), layer_scales(net, (5,), given.shifted(0.25))
    ):
        for x, y in zip(pair, other):
            assert y.factor * y.start == pytest.approx(x.factor * x.start)
            if not given.one_rate:
                assert y.factor**2 * y.rate == pytest.approx(x.factor**2 * x.rate)
                assert y.factor * y.adaptive_rate == pytest.approx(x.factor * x.adaptive_rate)


def test_mean_field_is_maximal_update_shifted():
    shifted = MAXIMAL_UPDATE.shifted(0.5)
    assert (shifted.input, shifted.hidden, shifted.output) == (
        MEAN_FIELD.input,
        MEAN_FIELD.hidden,
        MEAN_FIELD.output,
    )


def test_unequal_widths_keep_each_layers_share_of_the_kernel():
    # mean field: a layer's part of the kernel is rate x (fan-in x) |x|^2 |delta|^2 ~ rate / (fan-in
    # of the output layer)
    net = Chain(Dense(32), Activate("tanh"), Dense(128), Activate("tanh"), Dense(1))
    assert weights(MEAN_FIELD, net, (5,), "rate") == pytest.approx([128, 128, 128])


def test_convolutions_count_their_window_as_a_constant():
    net = Chain(Conv(N, (3, 3)), Activate("relu"), Conv(N, (3, 3)), Flatten(), Dense(1))
    factors = weights(NTK, net, (4, 4, 2), "factor")
    assert factors == pytest.approx([(9 * 2) ** -0.5, (9 * N) ** -0.5, (16 * N) ** -0.5])
    assert weights(MAXIMAL_UPDATE, net, (4, 4, 2), "factor")[1] == pytest.approx(1 / 3)


def test_roles_in_residual_networks():
    net = Chain(Residual(Chain(Dense(N), Activate("relu")), Dense(N)), Dense(1))
    from wideflow._core.weight_layers import weight_layers

    assert [place.role for place in weight_layers(net, (5,))] == ["input", "input", "output"]


def test_a_single_layer_has_no_width():
    assert weights(MEAN_FIELD, Dense(1), (4,), "factor") == [0.5]
    assert weights(MEAN_FIELD, Dense(1), (4,), "rate") == [1.0]


def test_names_and_their_faults():
    assert wf.parametrisations.parametrisation("mean-field") is MEAN_FIELD
    with pytest.raises(ValueError, match="Did you mean 'standard'"):
        wf.parametrisations.parametrisation("standart")
    with pytest.raises(ValueError, match="exponents for 2 layers, but the architecture has 3"):
        layer_scales(mlp(2, 8), (5,), ABC((0, 0.5), (0, 0)))
    with pytest.raises(ValueError, match="`hidden` must be three exponents"):
        wf.parametrisations.Parametrisation("mine", (0, 0, 0), (0, 0), (0, 0, 0))
    with pytest.raises(ValueError, match="at least one `Dense` or `Conv`"):
        layer_scales(Activate("relu"), (5,), NTK)
