r"""Hypotheses that this paper's statements share: unit inputs, signs, and the learners' random
start.

Each function says in words what speaks against one of them, and nothing where nothing does.
"""

import math

import numpy as np
from scipy.special import bdtr, ndtr

from ....theorems.gaussian_start import SIZE, normal_fault

_UNIT = 1e-6  # inputs in float32 have norm 1 to 1e-7


def inputs_fault(inputs) -> str:
    r"""Where not every row has $\lVert x\rVert = 1$."""
    norms = np.linalg.norm(np.asarray(inputs, float), axis=-1)
    worst = float(norms[np.argmax(np.abs(norms - 1))])
    if abs(worst - 1) <= _UNIT:
        return ""
    return (
        f"an input has norm {worst:.4g} and the statement is about unit inputs; "
        "`wf.data.unit_padding` makes them"
    )


def signs_fault(name: str, signs) -> str:
    """Where not every entry is 1 or -1."""
    values = np.asarray(signs, float)
    if np.all(np.abs(values) == 1):
        return ""
    return f"`{name}` must hold signs, 1 or -1, and has {values[np.abs(values) != 1].flat[0]:.4g}"


def layer_fault(weights, bias, layer: str) -> str:
    r"""Where $w_{ij} \sim \mathcal N(0, 1/m)$, $b_i = 0$ with probability 1/2 and
    $\mathcal N(0, 2/m)$ otherwise, is not what one layer was drawn from.

    Each test turns away a layer that was drawn so with probability at most `SIZE`.

    Args:
        weights: shape (m, d).
        bias: shape (m,).
        layer: what to call it.
    """
    weights, bias = np.asarray(weights, float), np.asarray(bias, float)
    width, zeros = len(bias), int(np.sum(bias == 0))
    fault = normal_fault(math.sqrt(width) * weights, f"the {layer}'s weights times sqrt(m)")
    if fault:
        return fault
    if 2 * min(bdtr(zeros, width, 0.5), bdtr(width - zeros, width, 0.5)) < SIZE:
        return f"{zeros} of {width} biases of the {layer} are zero where a half is assumed"
    drawn = bias[bias != 0]
    what = f"the {layer}'s biases times sqrt(m/2)"
    return normal_fault(math.sqrt(width / 2) * drawn, what) if drawn.size else ""


def readout_fault(output) -> str:
    r"""Where the output weights are no draw of $\mathcal N(0, \varepsilon_a^2)$, whatever
    $\varepsilon_a$.
    """
    a = np.asarray(output, float)
    size = float(np.sqrt(np.mean(a**2)))
    return normal_fault(a / (size if size > 0 else 1.0), "the output weights over their rms")


def preactivations_fault(preactivations, biased: bool) -> str:
    r"""Where $\sqrt m\,z$ is not drawn from $\mathcal N(0,1)$ and $\mathcal N(0,3)$ half and half
    (`biased`), or from $\mathcal N(0,1)$: by the distance of the distribution functions, which
    exceeds $\epsilon$ with probability at most $2e^{-2N\epsilon^2}$ (as in `gaussian_start`).

    Args:
        preactivations: $z$, shape (draw, width).
        biased: whether neurons have random biases.
    """
    rows = np.asarray(preactivations, float)
    if not np.all(np.isfinite(rows)):
        return "the pre-activations are not finite"
    z = np.sort(math.sqrt(rows.shape[-1]) * rows, axis=None)
    expected = (ndtr(z) + ndtr(z / math.sqrt(3))) / 2 if biased else ndtr(z)
    steps = np.arange(z.size + 1) / z.size
    distance = max(float(np.max(steps[1:] - expected)), float(np.max(expected - steps[:-1])))
    if 2 * math.exp(-2 * z.size * distance**2) >= SIZE:
        return ""
    law = "N(0, 1/m) and N(0, 3/m) half and half" if biased else "N(0, 1/m)"
    return (
        f"the pre-activations are not drawn from {law}: their distribution function is "
        f"{distance:.2g} away"
    )
