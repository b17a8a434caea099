"""Claims that fail when the thing is wrong: asked on tables made up for the purpose."""

import numpy as np
import pytest
import xarray as xr

from wideflow.papers.li2020.experiments import infinite_width, kernels, stage_runs
from wideflow.papers.li2020.experiments.ridge import kernels as kernel_table

NAMES = list(kernel_table(2, 1, np.random.default_rng(0)))


def kernel_results(network: float, ntk: float = 0.045, family: float = 1.0) -> xr.Dataset:
    """A run at paper size in which every kernel has d x loss `ntk` and the network `network` at n =
    10^4.
    """
    dims, sizes, counts = [20, 30, 40], [1000, 3000, 10000], [0, 10, 30]
    level = ntk / np.array(dims, dtype=float)
    floor = np.array([kernels.kernel_floor(8, 4, n, 35) for n in counts])
    return xr.Dataset(
        {
            "kernel_loss": (
                ("dimension", "samples", "seed", "kernel"),
                np.tile(level[:, None, None, None], (1, 3, 1, 8)),
            ),
            "network_loss": (
                ("dimension", "samples", "seed"),
                np.tile((network / np.array(dims))[:, None, None], (1, 3, 1)),
            ),
            "feature_mean": ("count", 2 * floor),
            "family_mean": (("count", "kernel"), family * np.tile(floor[:, None], (1, 8))),
            "family_floor": ("count", floor),
        },
        {"dimension": dims, "samples": sizes, "seed": [0], "kernel": NAMES, "count": counts},
    )


def failed(claims) -> list[str]:
    return [claim.text for claim in claims if not claim.ok]


def test_the_network_is_asked_to_be_fifty_times_below_every_kernel_at_paper_size():
    assert failed(kernels.claims(kernel_results(network=0.045 / 60))) == []
    (text,) = failed(kernels.claims(kernel_results(network=0.045 / 40)))
    assert text.startswith("d = 30, n = 10000")


def test_one_kernel_at_paper_size_that_is_too_good_is_noticed():
    table = kernel_results(network=0.045 / 60)
    table.kernel_loss.loc[dict(dimension=30, samples=10000, kernel="poly4")] /= 2
    assert any("d = 30, n = 10000" in text for text in failed(kernels.claims(table)))


def test_a_kernel_below_the_floor_of_the_hard_family_is_noticed():
    assert any(
        "eight kernels" in text
        for text in failed(kernels.claims(kernel_results(0.045 / 60, family=0.9)))
    )


def test_the_caption_tells_the_run():
    spec = kernels.draw(kernel_results(network=0.0045))
    assert "the best kernel is at 1 of the degree-two floor, the network at 0.1" in spec.caption


def moment_table(after: float, rate: float) -> xr.Dataset:
    """Second moments that start 0.5/d off and decay at `rate`/d to `after`/(b_2 d^2)."""
    d = 16
    t = np.linspace(0, 4 * d, 129)
    a = np.repeat([0.5, 1.5], d // 2) / d
    rest = after / (infinite_width.B2 * d**2)
    size = (0.5 / d - rest) * np.exp(-rate / d * t) + rest
    moments = a + np.sign(1 / d - a) * size[:, None]
    growth = np.tile(np.sqrt(a * d), (1, 3, 1))
    return xr.Dataset(
        {
            "loss": (("seed", "record"), [[1.0, 1e-6]]),
            "second_moments": (("seed", "early", "direction"), moments[None]),
            "growth": (("seed", "particle", "direction"), growth),
            "coefficients": ("direction", a),
            "symmetry_gap": 0.0,
            "average_error": 0.0,
        },
        {"time": ("record", [0.0, 1.0]), "early_time": ("early", t), "seed": [0]},
        {"features": d, "floor": (1 - 3 / np.pi) / d},
    )


@pytest.mark.parametrize(
    ("after", "rate", "expected"),
    [
        (0.0, 2.546, []),
        (5.5, 2.546, ["[d, 4d]", "rate"]),
        (0.0, 1.5, ["rate"]),
        (0.0, 3.5, ["rate"]),
    ],
)
def test_lemma_a2_asks_the_level_from_d_on_and_the_rate(after, rate, expected):
    texts = failed(infinite_width.claims(moment_table(after, rate)))
    assert len(texts) == len(expected)
    assert all(word in text for word, text in zip(expected, texts, strict=True))


def test_the_furthest_seed_is_shown():
    assert stage_runs.furthest([1.0, 1.9, 1.2], 1.0, 2.0) == 1.0
    assert np.isnan(stage_runs.furthest([1.0, np.nan], 1.0, 2.0))
