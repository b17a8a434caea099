"""Axes of a plane: lattices, units, and what is refused."""

import numpy as np
import pytest

from wideflow.phase.axes import QUANTITIES, Axis, axis_of, parse_axis, plane_of


def test_a_range_is_even_in_the_logarithm_with_its_own_ends():
    axis = axis_of("richness", (0.01, 100.0, 5))
    np.testing.assert_allclose(axis.values, [0.01, 0.1, 1.0, 10.0, 100.0], rtol=1e-12)
    np.testing.assert_allclose(axis.unit, [0, 0.25, 0.5, 0.75, 1], atol=1e-12)


def test_whole_quantities_stay_whole():
    assert axis_of("width", (16, 512)).values == (16, 32, 64, 128, 256, 512)
    assert all(type(v) is int for v in axis_of("depth").values)


def test_the_output_factor_is_one_over_the_richness():
    assert Axis("alpha", (0.5, 4.0)).setting(4.0) == {"richness": 0.25}


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_quantity_has_a_lattice_of_its_own(name):
    assert axis_of(name).values[0] == QUANTITIES[name].low


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("width=64,128", Axis("width", (64, 128))),
        ("share=0:1:3", Axis("share", (0.0, 0.5, 1.0))),
        ("rate", axis_of("rate")),
    ],
)
def test_shell_text(text, expected):
    assert parse_axis(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("widht", "Did you mean 'width'"),
        ("width=64,x", "--axis"),
        ("width=64,32", "must increase"),
        ("width=64.5,128", "whole number"),
        ("richness=-1,2", "`richness`"),
        ("share=0,2", "at most 1"),
        ("richness=2:1", "from low to high"),
        ("width=1:9999999:99", "count of width"),
    ],
)
def test_what_makes_no_sense_is_named(text, words):
    with pytest.raises(ValueError, match=words):
        parse_axis(text)


@pytest.mark.parametrize("axes", [("width",), ("width", "rate", "depth"), ("alpha", "richness")])
def test_a_plane_has_two_different_axes(axes):
    with pytest.raises(ValueError, match="axes"):
        plane_of(axes)
