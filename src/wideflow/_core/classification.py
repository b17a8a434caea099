r"""What theory says about width exponents before any training: stable or not, feature learning or
kernel regime (yang2021).

Layer $l = 1..L+1$ acts as $n^{-a_l} w^l$, $w^l \sim N(0, n^{-2 b_l})$, and is trained at rate
$\eta\, n^{-c}$. Write $s = a_{L+1} + b_{L+1}$ and $v = 2 a_{L+1} + c$. A derivation of every
exponent, in sizes of single coordinates:

* The output's gradient in a coordinate of the last hidden layer is $n^{-m}$, $m = \min(s, v)$: the
  readout's size at the start, or what training adds to it. Backward through layers with
  $a_l + b_l = 1/2$ it keeps that size.
* The effective matrix $n^{-a_l} w^l$ moves by $n^{-(2a_l + c)}$ times its gradient $n^{-m}$.
  Against a fixed number of inputs ($l = 1$) that moves the pre-activations by
  $n^{-(2a_1 + c + m)}$; in a hidden layer $n$ aligned terms add up, $n^{-(2a_l + c + m - 1)}$.
  Changes of earlier layers come through unchanged, so that layer $l$ moves by $n^{-r_l}$,
  $r_l = m + c - 1 + \min_{k \le l} (2 a_k + [k = 1])$, and $r = r_L$.
* Outputs start at $n^{1/2 - s}$ and move by $n^{1-v}$ (readout) and $n^{1-s-r}$ (features, aligned
  with the readout).
* The tangent kernel is a sum over layers of means over $n$ neurons. A relative change $n^{-\rho}$
  of each neuron, of random sign because it is proportional to the neuron's own output weight,
  changes such a mean by $n^{-\rho - 1/2}$ at first order and by $n^{-2\rho}$ at second:
  $n^{-\min(2\rho,\, \rho + 1/2)}$, hence $1/n$ for NTK and standard, whose features move by
  $n^{-1/2}$ (dyer2020; huang2020).
"""

import math
from dataclasses import dataclass

from .errors import check_flag, check_list, check_same_length

TOLERANCE = 1e-9  # exponents are decimal fractions; equality is up to their rounding


@dataclass(frozen=True)
class ScalingVerdict:
    r"""The regime that exponents put a network in, and slopes against the width to be expected on
    log-log axes.

    Attributes:
        r: the exponent of yang2021, Definition 3.2: features of the last hidden layer move by
            $n^{-r}$.
        stable: whether nothing blows up with the width, at the start or in training.
        nontrivial: whether outputs move at all as the width grows.
        regime: "feature learning", "kernel", "trivial" (stable, but outputs stay where they are) or
            "unstable".
        features: slope of the change of pre-activations, one for each hidden layer, $-r_l$.
        outputs_at_start: slope of the outputs at the start.
        outputs: slope of the change of the outputs.
        kernel: slope of the relative change of the tangent kernel.
        reasons: which conditions fail or decide, one sentence each.
    """

    r: float
    stable: bool
    nontrivial: bool
    regime: str
    features: tuple[float, ...]
    outputs_at_start: float
    outputs: float
    kernel: float
    reasons: tuple[str, ...]

    @property
    def feature_learning(self) -> bool:
        return self.regime == "feature learning"

    @property
    def slopes(self) -> dict[str, float]:
        """The predicted slopes by the names that measurements give: `layer_1`, ..., `outputs`,
        `kernel`; what stays put is left out.
        """
        named = {f"layer_{l}": slope for l, slope in enumerate(self.features, 1)}
        named |= {"outputs": self.outputs, "kernel": self.kernel}
        return {name: slope for name, slope in named.items() if math.isfinite(slope)}

    def __str__(self) -> str:
        slopes = ", ".join(f"{slope:g}" for slope in self.features)
        return "\n".join(
            [
                f"{self.regime}, r = {self.r:g}",
                f"  features move like width^({slopes}), outputs like width^{self.outputs:g}, "
                f"the tangent kernel (relative) like width^{self.kernel:g}",
                *(f"  {reason}" for reason in self.reasons),
            ]
        )


def classify(abc, trained=None) -> ScalingVerdict:
    r"""The regime of `abc`'s exponents, by yang2021, Theorem 3.3 and Corollary 3.9 (for tanh- and
    GELU-like activations).

    Args:
        abc: `scalings.ABC` with $L + 1 \ge 2$ layers. Rate exponents of its own for each layer are
            first made one by the shift symmetry $(a_l + \theta, b_l - \theta, c_l - 2\theta)$,
            which holds layer by layer.
        trained: which layers are trained, one flag a layer; default all. Frozen layers do not move,
            so they leave $m$, $r$ and $v$.

    >>> import wideflow as wf
    >>> wf.scalings.classify(wf.scalings.ABC(a=(0, 0.5, 0.5), b=(0, 0, 0))).regime
    'kernel'
    """
    if not hasattr(abc, "rate_exponents"):
        raise ValueError(
            f"`abc` must be `scalings.ABC`, got {type(abc).__name__}. Call `.abc(depth)` of a "
            "parametrisation to get one."
        )
    a, b, c = _one_rate(abc)
    trained = (True,) * len(a) if trained is None else trained
    check_list("trained", trained, "flags, one a layer")
    for flag in trained:
        check_flag("trained", flag)
    check_same_length(a=a, trained=trained)
    s = a[-1] + b[-1]
    v = 2 * a[-1] + c if trained[-1] else math.inf
    m = min(s, v)
    # 2 a_l + [l = 1]
    shares = [(2 * a[l] + (l == 0)) if trained[l] else math.inf for l in range(len(a) - 1)]
    moves = [m + c - 1 + min(shares[: l + 1]) for l in range(len(shares))]
    r = moves[-1]
    faults = _faults(a, b, s, v, r)
    start_is_stable = not any(fault.startswith("at the start") for fault in faults)
    nontrivial = not faults and (_equal(v, 1) or _equal(s + r, 1))
    if faults:
        regime = "unstable"
    elif not nontrivial:
        regime = "trivial"
    else:
        regime = "feature learning" if _equal(r, 0) else "kernel"
    unknown = math.nan
    return ScalingVerdict(
        r=r,
        stable=not faults,
        nontrivial=nontrivial,
        regime=regime,
        features=tuple(0.0 - move if start_is_stable else unknown for move in moves),
        outputs_at_start=0.5 - s if start_is_stable else unknown,
        outputs=1 - min(v, s + r) if start_is_stable else unknown,
        kernel=0.0 - _kernel_exponent(a, c, s, v, m, r, trained) if not faults else unknown,
        reasons=tuple(faults) or (_reason(regime, r),),
    )


def _one_rate(abc) -> tuple[tuple, tuple, float]:
    """The exponents with one rate for all layers, the output layer's, by shifting each layer."""
    rates = abc.rate_exponents
    shifts = [(rate - rates[-1]) / 2 for rate in rates]
    a = tuple(x + shift for x, shift in zip(abc.a, shifts, strict=True))
    b = tuple(x - shift for x, shift in zip(abc.b, shifts, strict=True))
    return a, b, rates[-1]


def _faults(a, b, s, v, r) -> list[str]:
    """The conditions of stability that fail."""
    faults = []
    if not _equal(a[0] + b[0], 0):
        faults.append(f"at the start layer 1 has a + b = {a[0] + b[0]:g}, not 0.")
    for l in range(1, len(a) - 1):
        if not _equal(a[l] + b[l], 0.5):
            faults.append(f"at the start layer {l + 1} has a + b = {a[l] + b[l]:g}, not 1/2.")
    if s < 0.5 - TOLERANCE:
        faults.append(f"at the start outputs grow: the last layer's a + b = {s:g} is below 1/2.")
    if r < -TOLERANCE:
        faults.append(f"features blow up: r = {r:g} is below 0.")
    if v < 1 - TOLERANCE:
        faults.append(f"outputs blow up: the last layer's 2a + c = {v:g} is below 1.")
    if s + r < 1 - TOLERANCE:
        faults.append(f"outputs blow up: the last layer's a + b + r = {s + r:g} is below 1.")
    return faults


def _reason(regime: str, r: float) -> str:
    if regime == "feature learning":
        return "r = 0: features move at every width."
    if regime == "kernel":
        return f"r = {r:g} is above 0: features freeze, and outputs follow a fixed kernel."
    return "neither 2a + c nor a + b + r of the last layer is 1: outputs do not move."


def _kernel_exponent(a, c, s, v, m, r, trained) -> float:
    r"""$\min_l (S_l + e(\rho_l)) - \min_l S_l$ over the trained layers' parts of the kernel, of
    size $n^{-S_l}$.

    The part of a layer is (rate) x (Gram of its inputs) x (Gram of its output gradients). Those of
    hidden layers change with the features, $r$, and with the readout, $v - s$; the readout's own
    part with its inputs alone.
    """
    readout = max(0.0, v - s)
    sizes, changes = [], []
    for l, moved in enumerate(trained):
        if not moved:
            continue
        last = l == len(a) - 1
        sizes.append(v - 1 if last else 2 * a[l] + c + 2 * m - 2 + (l == 0))
        rho = r if last else min(r, readout)
        changes.append(min(2 * rho, rho + 0.5))
    if not sizes:
        return math.inf
    return min(size + change for size, change in zip(sizes, changes)) - min(sizes)


def _equal(x, y) -> bool:
    return abs(x - y) <= TOLERANCE
