"""Claims and figures of full-size tables, on made-up numbers: what would be said is said, and wrong
numbers fail.
"""

import numpy as np
import pytest
import xarray as xr

from wideflow.papers.caron2023.experiments import (
    digits,
    figure1,
    figure2,
    figure4,
    figure10,
    figure11,
    members,
    regression,
)

ORDER = [members.label(g, a) for g, a in zip(members.GAMMAS, members.ALPHAS, strict=True)]
STEPS, REMOVED, TOPS = [0, 100_000], list(range(0, 2001, 100)), list(range(10, 101, 10))


def table(variables: dict, attrs: dict, **extra) -> xr.Dataset:
    """Constant arrays: each variable is (axes, value), a value being a number or one number a
    setting.
    """
    sizes = {
        "setting": ORDER,
        "seed": [0, 1],
        "step": STEPS,
        "importance": ["paper", "released"],
        "removed": REMOVED,
        "top": TOPS,
        **extra,
    }
    made = {}
    for name, (axes, value) in variables.items():
        shape = tuple(len(sizes[a]) for a in axes)
        column = (
            np.broadcast_to(np.asarray(value, dtype=float), (len(sizes["setting"]),))
            if "setting" in axes
            else np.asarray(value, dtype=float)
        )
        where = axes.index("setting") if "setting" in axes else None
        values = np.full(shape, 1.0) * (
            column
            if where is None
            else column.reshape([-1 if i == where else 1 for i in range(len(axes))])
        )
        made[name] = (axes, values)
    used = {a for axes, _ in variables.values() for a in axes}
    return xr.Dataset(made, {a: v for a, v in sizes.items() if a in used}, attrs)


def regression_table() -> xr.Dataset:
    numbers = regression.PUBLISHED["concrete"]
    five = lambda four: np.insert(
        np.asarray(four), 2, np.sqrt(four[1] * four[2])
    )  # (.5, .5) lies between its neighbours
    run = ("dataset", "setting", "seed", "step")
    made = table(
        {
            "risk": (run, five(numbers["risk"])),
            "test_risk": (run, five(numbers["test_risk"])),
            "most_moved": (run, five(numbers["movement"])),
            "kernel_drift": (run, five(numbers["root_drift"]) ** 2),
            "kernel_gap": (run, five(numbers["gap"])),
            "mean_initial_gap": (("dataset", "setting"), five(numbers["gap"])),
            "pruned_risk": (
                ("dataset", "setting", "seed", "importance", "part", "removed"),
                five(numbers["risk"]),
            ),
            "transfer_risk": (("dataset", "top", "setting", "seed"), five(numbers["transfer_10"])),
            "transfer_test_risk": (
                ("dataset", "top", "setting", "seed"),
                five(numbers["transfer_10"]),
            ),
        },
        {"convention": "released", "width": 2000, "rate": 1.0, "steps": 100_000, "largest": 0},
        dataset=["concrete"],
        part=["train", "test"],
    )
    pruned = made["pruned_risk"].copy()
    pruned.loc[dict(removed=0, part="test")] = np.reshape(five(numbers["test_risk"]), (1, 5, 1, 1))
    pruned.loc[dict(removed=1000)] = np.reshape(five(numbers["pruned_half"]), (1, 5, 1, 1, 1))
    pruned.loc[dict(removed=1900)] = np.reshape(five(numbers["pruned_most"]), (1, 5, 1, 1, 1))
    pruned.loc[dict(removed=2000)] = 1.0
    pruned.loc[dict(removed=100, importance="paper")] *= 0.9
    made["pruned_risk"] = pruned
    last = made["transfer_test_risk"].copy()
    last.loc[dict(top=100)] = np.reshape(five(numbers["transfer_100"]), (1, 5, 1))
    made["transfer_test_risk"] = last
    return made


def test_the_published_table_of_concrete_satisfies_every_claim():
    made = regression_table()
    found = regression.claims(made)
    assert len(found) == 13 + 9 * 4
    assert [c.text for c in found if not c.satisfied] == []
    assert sum(c.published is not None for c in found) == 36
    assert len(regression.draw(made).panels) == 9
    assert len(figure2.draw(made).panels) == 1
    for drawn in (regression.draw(made), figure2.draw(made)):  # the picture alone says what was run
        assert "m = 2000, 100000 steps of rate 1 on the mean square" in drawn.caption


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("risk", "training risk rises"),
        ("most_moved", "movement of the most-moved"),
        ("kernel_drift", "change of the Gram"),
        ("mean_initial_gap", "smallest eigenvalue at t = 0 falls"),
    ],
)
def test_a_flat_quantity_fails_its_claim(variable, words):
    made = regression_table()
    made[variable] = 0.0 * made[variable] + 1.0
    assert not next(c for c in regression.claims(made) if words in c.text).satisfied


def test_the_published_table_of_mnist_satisfies_every_claim():
    numbers = digits.PUBLISHED
    five = lambda four: np.insert(np.asarray(four), 2, np.sqrt(four[1] * four[2]))
    run, axes = ("setting", "seed", "step"), ("setting", "seed", "importance", "part", "removed")
    made = table(
        {
            "risk": (run, five(numbers["risk"])),
            "test_risk": (run, five(numbers["risk"])),
            "test_accuracy": (run, five(numbers["accuracy"])),
            "most_moved": (run, five(numbers["movement"])),
            "kernel_drift": (run, five(numbers["root_drift"]) ** 2),
            "kernel_gap": (run, 1e-3),
            "pruned_risk": (axes, five(numbers["risk"])),
            "pruned_accuracy": (axes, five(numbers["accuracy"])),
            "transfer_risk": (("top", "setting", "seed"), 0.05),
            "transfer_test_risk": (("top", "setting", "seed"), 0.06),
            "transfer_test_accuracy": (("top", "setting", "seed"), five(numbers["transfer_10"])),
        },
        {"convention": "released", "width": 2000, "rate": 8.0, "steps": 25_000, "samples": 5000},
        part=["train", "test"],
    )
    for removed, name in ((1000, "pruned_half"), (1900, "pruned_most")):
        made["pruned_accuracy"].loc[dict(removed=removed)] = five(numbers[name]).reshape(5, 1, 1, 1)
    made["transfer_test_accuracy"].loc[dict(top=100)] = five(numbers["transfer_100"])[:, None]
    found = digits.claims(made)
    assert [c.text for c in found if not c.satisfied] == []
    assert sum(c.published is not None for c in found) == 8 * 4
    shown = {panel.title for panel in figure10.EXPERIMENT.draw(made).panels}
    # among the paper's nine panels: training and test risk of training, pruning and transfer
    for after in ("", " after pruning", " of transfer"):
        assert {f"Training risk{after}", f"Test risk{after}", f"Test accuracy{after}"} < shown
    assert len(shown) == 9 + 3


@pytest.mark.parametrize(("off", "holds"), [(0.09, True), (0.1, False)])
def test_means_of_seeds_lie_within_students_interval_of_the_published(off, holds):
    # deviation 1/30 over five seeds: 4.604, the t table's 99 % at four degrees of freedom, times
    # sqrt(2/5)/30 is 0.0971
    seeds = 0.6 + off + np.array([-1, -1, 0, 1, 1]) / 30
    claim = digits._published("accuracy", seeds, 0.6)
    assert claim.satisfied == holds
    assert claim.tolerance == pytest.approx(4.604 * np.sqrt(2 / 5) / 30, rel=1e-3)
    # a wide spread does not excuse more than a third
    assert not digits._published("accuracy", 0.81 + 9 * (seeds - seeds.mean()), 0.6).satisfied


def test_cifar_tables():
    axes, run = ("setting", "seed", "importance", "part", "removed"), ("setting", "seed", "step")
    accuracy, moved = (0.86, 0.85, 0.85, 0.84, 0.83), (9.0, 52.0, 60.0, 66.0, 118.0)
    made = table(
        {
            "test_loss": (run, 0.4),
            "test_accuracy": (run, accuracy),
            "most_moved": (run, moved),
            "pruned_cross_entropy": (axes, 0.4),
            "pruned_accuracy": (axes, accuracy),
            "pruned_risk": (axes, 0.1),
        },
        {
            "convention": "released",
            "features": "CIFAR-10 train as mobilenetv2-pca512",
            "classes": 10,
            "width": 2000,
            "epochs": 100,
            "samples": 50_000,
        },
        part=["test"],
    )
    made["pruned_accuracy"].loc[dict(removed=1900)] = np.reshape(
        [0.36, 0.52, 0.5, 0.49, 0.827], (5, 1, 1, 1)
    )
    assert [c.text for c in figure4.claims(made) if not c.satisfied] == []
    assert "mobilenetv2-pca512" in figure4.draw(made).title
    falling = made.isel(setting=slice(0, 4))
    assert len(figure11.claims(falling)) == 2 + 1 + 2 * 2
    swapped = falling.copy(deep=True)
    swapped["pruned_accuracy"].loc[dict(removed=1000)] = np.reshape(
        [0.80, 0.81, 0.82, 0.82], (4, 1, 1, 1)
    )
    half = next(c for c in figure11.claims(swapped) if c.text.startswith("50%"))
    assert half.verdict == "does not reproduce (declared)"
    assert half.ok
    mixture = made.assign_attrs(features="Gaussian mixture, train")
    asked = {c.text for c in figure4.claims(made)} - {c.text for c in figure4.claims(mixture)}
    assert any("accuracy lost" in text for text in asked)  # asked of the features alone
    assert len(figure4.claims(mixture)) == 2 + 2


def figure1_table() -> xr.Dataset:
    """The published numbers as a run, with the specification's middle for the fifth setting."""
    middle = dict(risk=1.1e-5, movement=9.0, drift=0.02, gap=0.0026)
    five = [*list(figure1.PUBLISHED.values())[:2], middle, *list(figure1.PUBLISHED.values())[2:]]
    of = lambda name: np.array([one[name] for one in five])
    run = ("setting", "seed", "step")
    made = table(
        {
            "risk": (run, of("risk")),
            "most_moved": (run, of("movement")),
            "kernel_drift": (run, of("drift")),
            "kernel_gap": (run, of("gap")),
            "kernel_top": (("setting", "seed"), 0.033),
        },
        {"convention": "released", "samples": 100, "features": 50, "width": 2000},
    )
    return made.assign_coords(time=("step", np.full(made.sizes["step"], 1000.0)))


def test_the_published_numbers_of_figure_1_lie_in_the_ranges_of_the_specification():
    found = figure1.claims(figure1_table())
    assert [c.text for c in found if not c.satisfied] == []
    assert sum(c.published is not None for c in found) == 16


@pytest.mark.parametrize("variable", ["risk", "most_moved", "kernel_drift", "kernel_gap"])
@pytest.mark.parametrize("factor", [0.4, 2.5])
def test_figure_1_does_not_forgive_a_factor(variable, factor):
    made = figure1_table()
    made[variable] = factor * made[variable]
    assert any(not c.satisfied for c in figure1.claims(made))


def test_the_convention_of_the_text_is_one_setting():
    literal, released = figure1.Settings(convention="paper"), figure1.Settings()
    assert literal.descent == (1.0, 4000)
    assert released.descent == (10.0, 100)
    assert figure1.EXPERIMENT.settings["paper"].descent == (0.02, 50_000)
