"""Quantities that an experiment's table holds to be drawn or read, and of which its paper says
nothing that a claim could ask.

By experiment: the quantity, and why nothing is asked of it.
`tests/experiments/test_default_sizes.py` lets no other pass.
"""

DRAWN = "drawn; the specification gives no number at this size"
FULL = "drawn; the published numbers are of the full size"
COPY = "another judged quantity in other units"
BOUNDED = "judged by a bound, which lies more than the factor away"
ZERO = "zero throughout, which no factor changes; any other value fails its claim"
SETTING = "a setting or a count of the run, not a result"
WRONG = "shows that a printed formula is wrong; a factor does not make it right"

_REGRESSION = {"initial_gap": "its mean is judged", "kernel_gap": FULL, "transfer_risk": DRAWN}
_DIGITS = {
    "kernel_gap": FULL,
    "pruned_cross_entropy": "trained on squares; kept for comparison",
    "transfer_risk": DRAWN,
    "transfer_test_risk": "judged by its accuracy",
}
_LEARNER = {
    "projected_pairs": ZERO,
    "projected_steps": ZERO,
    "redraws": SETTING,
    "radial_spread": DRAWN,
    "tangent_spread": DRAWN,
    "second_spread": BOUNDED,
    "limit_loss": DRAWN,
}
_GRID = {"diverged": ZERO, "loss": COPY, "rate": SETTING, "step": SETTING}

UNJUDGED: dict[str, dict[str, str]] = {
    "caron2023-figure1": {"loss": COPY, "test_risk": DRAWN},
    "caron2023-figure2": _REGRESSION,
    "caron2023-figure3": _DIGITS,
    "caron2023-figure4": {"pruned_risk": "trained on cross-entropy; kept for comparison"},
    "caron2023-figure5": {"truncation_error": "bounds how far the drawn sum is cut"},
    "caron2023-figure6": _REGRESSION,
    "caron2023-figure7": _REGRESSION,
    "caron2023-figure8": _REGRESSION,
    "caron2023-figure9": _REGRESSION,
    "caron2023-figure10": _DIGITS,
    "caron2023-figure11": {
        "most_moved": DRAWN,
        "pruned_risk": "trained on cross-entropy; kept for comparison",
    },
    "caron2023-widths": {"risk": DRAWN},
    "caron2023-kinks": {
        "excess": DRAWN,
        "flips": DRAWN,
        "kernel_gap": "the rates computed from it are judged",
        "loss": "the rate fitted to it is judged",
        "pairs": SETTING,
        "stuck": BOUNDED,
    },
    "caron2023-guarantees": {"ratio": BOUNDED, "relu_required": BOUNDED},
    "caron2023-first-step": {"printed_errors": WRONG},
    "caron2023-to-the-end": {
        "kappa": DRAWN,
        "kernel_top": DRAWN,
        "promised_gap": DRAWN,
        "seconds": "the duration on this machine",
        "stationary_at": DRAWN,
    },
    "chen2022-figure1": {**_GRID, "kernel_top": DRAWN},
    "chen2022-figure2": {**_GRID, "sum_loss": DRAWN, "time": SETTING},
    "chen2022-figure3": {
        **_GRID,
        "relative_movement": DRAWN,
        "start_spread_mean": "judged over the widths, in chen2022-figure4",
        "start_spread_worst": "judged over the widths, in chen2022-figure4",
        "sum_loss": DRAWN,
        "test_accuracy": "judged by the test risk",
        "time": SETTING,
    },
    "chen2022-figure4": {
        **_GRID,
        "relative_movement": BOUNDED,
        "scatter": DRAWN,
        "test_accuracy": "judged by the test risk",
    },
    "chen2022-dashboard": {
        "certified_rate": DRAWN,
        "eta": "the slack computed from it is judged",
        "needed_chat": DRAWN,
        "right_corrected": "the slack computed from it is judged",
        "right_sharp": "the slack computed from it is judged",
        "scaled_time": SETTING,
        "share_sharp": DRAWN,
        "slack_corrected": "judged by its sign",
        "slack_sharp": "judged by its sign",
        "sum_loss": DRAWN,
    },
    "chen2022-gram": {"top": DRAWN},
    "li2020-figure1": {
        "expansion_error": BOUNDED,
        "gradient_error": BOUNDED,
        "printed_gradient_error": WRONG,
        "spectral_moment_error": DRAWN,
        "training": "the population loss itself, which is judged",
        "zeroth_moment_error": DRAWN,
    },
    "li2020-figure1-samples": {
        "largest_neuron": DRAWN,
        "order_losses": "the time at which order 2 settles is judged, and no factor moves it",
        "spectral_moment_error": DRAWN,
        "zeroth_moment_error": DRAWN,
    },
    "li2020-figure2": {
        "largest_neuron": DRAWN,
        "learner_ratio": BOUNDED,
        "order_losses": "drawn; judged in li2020-figure1",
        "sample_training": DRAWN,
        "scale_ratio": BOUNDED,
        "spectral_moment_error": DRAWN,
        "training": "the population loss itself, which is judged",
        "zeroth_moment_error": DRAWN,
    },
    "li2020-width": {"end": BOUNDED},
    "li2020-kernels": {
        "family_floor": "a lower bound, and the losses lie more than the factor above it",
        "family_mean": BOUNDED,
        "feature_mean": BOUNDED,
    },
    "li2020-infinite-width": {"average_error": BOUNDED, "symmetry_gap": BOUNDED},
    "li2020-coupling": {
        "largest_square": DRAWN,
        "least_form": "judged by its sign",
        "square_gap": BOUNDED,
        "term_error": BOUNDED,
    },
    "li2020-algorithm1": {"largest_neuron": DRAWN},
    "ren2023-figure2": {
        **_LEARNER,
        "limit_b": "drawn; the specification compares alpha with infinite width",
        "limit_w": "drawn; the specification compares alpha with infinite width",
        "profile": "drawn; the largest departure from symmetry is judged",
        "target": "the target itself",
    },
    "ren2023-concentration": _LEARNER,
    "ren2023-dimension": {"loss": "the times computed from it are judged"},
    "ren2023-separation": {"constant": BOUNDED},
    "ren2023-stages": {"weight": "the events computed from it are judged"},
    "ren2023-deterministic": {
        "direction_sup": DRAWN,
        "energy_balance": "conserved; its drift is judged, far below its bound",
        "second_spread": "its rise between records is judged",
    },
    "ren2023-stack": {
        "bias_noise": "the standard error of a judged quantity",
        "distance_error": "the standard error of a judged quantity",
        "left": DRAWN,
    },
    "allenzhu2018-width": {"train_error": DRAWN, "train_loss": DRAWN},
    "allenzhu2018-coupling": {
        "constant": "does not depend on the width, which no factor or order disturbs"
    },
    "allenzhu2018-variants": {"clean_averaged": DRAWN},
    "allenzhu2018-spread": {
        "awake": "drawn; one reference run, no bound",
        "dropped_top": "drawn; one reference run, no bound",
        "largest": "drawn; one reference run, no bound",
    },
    "allenzhu2018-representation": {"mismatch52": DRAWN},
    "allenzhu2018-descent-direction": {
        "here": "the differences from it are judged",
        "margin_lambda": "judged by its sign",
        "margin_printed": "judged by its sign",
        "shrunk": "drawn; the sign of the other move is judged",
    },
    "allenzhu2018-algorithm2": {
        "loss": "the loss at the end is judged on test inputs",
        "scale": "its end is judged",
        "step_objective": DRAWN,
        "zero_loss": "drawn as a baseline",
    },
    "benarous2021-exponent": {"threshold": SETTING},
    "bordelon2022-kernels": {
        "theory_kernels_error": "the standard error of a judged quantity",
        "theory_loss_error": "the standard error of a judged quantity",
    },
    "bordelon2022-linear": {"residual": BOUNDED},
    "geiger2020-lazy-rich": {
        "error_path": "drawn; its end is judged",
        "test_error": "the one claim about it is declared as not reproducing",
    },
}

_TRANSFER = ("kernel_drift", "most_moved", "transfer_test_risk", "mean_initial_gap")
_ACCURACY = ("kernel_drift", "most_moved", "transfer_test_accuracy")

# Quantities of which an order, a slope, a ratio or a bound far away is asked, and no level: a claim
# notices when their values are exchanged, and not when all are larger by a factor. By experiment;
# with nothing beside it, every judged quantity of it is asked its level.
SCALE_FREE: dict[str, tuple[str, ...]] = {
    "caron2023-figure1": (),
    "caron2023-figure2": _TRANSFER,
    "caron2023-figure3": _ACCURACY,
    "caron2023-figure4": ("most_moved",),
    "caron2023-figure5": (),
    "caron2023-figure6": _TRANSFER,
    "caron2023-figure7": _TRANSFER,
    "caron2023-figure8": _TRANSFER,
    "caron2023-figure9": _TRANSFER,
    "caron2023-figure10": _ACCURACY,
    "caron2023-figure11": (),
    "caron2023-first-step": (),
    "caron2023-guarantees": ("relu_ratio",),
    "caron2023-kinks": (),
    "caron2023-limit": ("loss_gap", "movement_gap"),
    "caron2023-to-the-end": ("loss",),
    "caron2023-widths": ("movement", "drift", "gap"),
    "chen2022-dashboard": ("feature_movement",),
    "chen2022-figure1": ("sum_loss", "feature_movement", "gram_gap"),
    "chen2022-figure2": ("test_risk", "feature_movement"),
    "chen2022-figure3": ("test_risk", "feature_movement"),
    "chen2022-figure4": ("sum_loss", "feature_movement", "time"),
    "chen2022-gram": ("distance", "gap"),
    "chen2022-limits": (),
    "chen2022-reduction": ("sum_loss",),
    "li2020-algorithm1": (),
    "li2020-coupling": (),
    "li2020-figure1": (),
    "li2020-figure1-samples": (),
    "li2020-figure2": (),
    "li2020-infinite-width": (),
    "li2020-kernels": (),
    "li2020-late": ("population",),
    "li2020-lottery": ("start_weights", "drawn_weights"),
    "li2020-scaling": (),
    "li2020-width": ("gradient_error",),
    "ren2023-clipping": ("share", "largest"),
    "ren2023-concentration": (),
    "ren2023-deterministic": (),
    "ren2023-dimension": (),
    "ren2023-figure2": (),
    "ren2023-regular-laws": ("loss",),
    "ren2023-separation": (),
    "ren2023-stack": ("fluctuation", "bias", "distance", "bottleneck", "limit_loss"),
    "ren2023-stages": (),
    "ren2023-width": (),
    "allenzhu2018-coupling": ("coupling", "coupling3", "shrinking", "smoothed"),
    "allenzhu2018-descent-direction": (),
    "allenzhu2018-representation": ("error_g1", "error56", "residual52"),
    "allenzhu2018-sign-changes": ("flipped", "flipped_first", "flipped_second"),
    "allenzhu2018-spread": (
        "random_half",
        "first_norm_4",
        "first_norm_2",
        "first_norm_inf",
        "second_norm_2",
        "second_norm_inf",
    ),
    "allenzhu2018-three-beat-two": (),
    "allenzhu2018-variants": ("clean_test", "noise"),
    "allenzhu2018-width": (),
}
