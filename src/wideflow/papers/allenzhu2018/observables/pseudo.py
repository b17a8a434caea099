r"""Pseudo networks: a learner with its ReLU signs frozen (allenzhu2018, (33)-(36), (44)-(47),
(403)).

With 0/1 signs $D_w, D_v$ frozen at a chosen point the network becomes multilinear in its weights:
$g(x; W, V) = a\,D_v(V D_w(Wx + b_1) + b_2)$ (33), $g^{(b)}$ without $b_2$ (34), $g^{(b,b)}$ without
both biases (35). At the point of freezing $g$ is the network (36). How far the two part elsewhere
is the coupling error.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ...._core.arrays import real_array
from ...._core.errors import check_choice, check_kind, check_number
from ...._core.precision import AbstractResult, double
from ...._core.trees import with_parameters
from ....observables.base import AbstractObservable, check_samples, probe_features
from ..models.biased_three_layer import BiasedThreeLayer
from ..models.biased_two_layer import BiasedTwoLayer
from ..models.closed_relu import active


class Signs(AbstractResult):
    r"""$D_w$ (sample, first) and $D_v$ (sample, second); a two-layer network has `first` alone.

    Attributes:
        first: $D_w$'s diagonal at each input.
        second: $D_v$'s, or None.
    """

    first: Bool[Array, "sample first"]
    second: Bool[Array, "sample second"] | None


@double
def signs(model: BiasedTwoLayer | BiasedThreeLayer, inputs) -> Signs:
    """Which neurons are active ($z \\ge 0$) at the model's present weights.

    Args:
        model: a `BiasedTwoLayer` or a `BiasedThreeLayer`.
        inputs: shape (sample, feature).
    """
    check_kind(
        "model",
        model,
        (BiasedTwoLayer, BiasedThreeLayer),
        "a `BiasedTwoLayer` or `BiasedThreeLayer`",
    )
    inputs = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    if isinstance(model, BiasedTwoLayer):
        return Signs(active(model.preactivations(inputs)), None)
    z, q = model.preactivations(inputs)
    return Signs(active(z), active(q))


def second_signs(frozen: Signs) -> Bool[Array, "sample second"]:
    """Those of the second layer; a network of two layers has none."""
    if frozen.second is None:
        raise ValueError(
            "`frozen` holds the signs of a network of two layers. Take them from `signs(model, "
            "inputs)` of the three-layer one."
        )
    return frozen.second


@double
def pseudo_outputs(
    model: BiasedTwoLayer | BiasedThreeLayer,
    inputs,
    frozen: Signs,
    *,
    first=None,
    second=None,
    biases: str = "both",
) -> Float[Array, " sample *output"]:
    r"""The pseudo network on a batch, with signs `frozen`.

    Args:
        first, second: the whole weights $W$, $V$ at which to evaluate; default: the model's
            (initial plus increment).
        biases: "both" for $g$ (33) and (403), "first" for $g^{(b)}$ (34), "none" for $g^{(b,b)}$
            (35). Two layers know "both" and "none".
        model: where biases, output weights and scale come from.
        inputs: shape (sample, feature).
        frozen: which neurons count as active, from `signs`.
    """
    check_choice("biases", biases, ("both", "first", "none"))
    inputs = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    if isinstance(model, BiasedTwoLayer):
        w = model.weights
        if first is not None:
            w = real_array("first", first, str(w.shape))
        z = inputs @ w.T + (0.0 if biases == "none" else model.bias)
        return (frozen.first * z) @ model.output.T
    w, v = model.first + model.first_increment, model.second + model.second_increment
    if first is not None:
        w = real_array("first", first, str(w.shape))
    if second is not None:
        v = real_array("second", second, str(v.shape))
    z = inputs @ w.T + (0.0 if biases == "none" else model.first_bias)
    q = (frozen.first * z) @ v.T + (model.second_bias if biases == "both" else 0.0)
    return model.scale * ((second_signs(frozen) * q) @ model.output.T)


@double
def sign_changes(model, start, inputs) -> dict[str, Float[Array, ""]]:
    """Fraction of signs that differ between `model` and `start`, by layer ("first", "second"), over
    neurons and inputs.

    Args:
        model: the network now.
        start: the network before.
        inputs: shape (sample, feature).
    """
    wanted = "a `BiasedTwoLayer` or `BiasedThreeLayer`"
    for name, network in (("model", model), ("start", start)):
        check_kind(name, network, (BiasedTwoLayer, BiasedThreeLayer), wanted)
    if type(model) is not type(start):
        raise ValueError(
            f"`start` must be a {type(model).__name__} like `model`, got {type(start).__name__}."
        )
    now, then = signs(model, inputs), signs(start, inputs)
    fractions = {"first": jnp.mean(now.first != then.first, dtype=float)}
    if now.second is not None:
        fractions["second"] = jnp.mean(now.second != then.second, dtype=float)
    return fractions


@double
def coupling_error(model, start, inputs) -> Float[Array, " sample *output"]:
    r"""$f - g$ on each input: the network against the pseudo network with the signs of `start`,
    both at the model's weights.

    Args:
        model: the network now.
        start: the network that gives the signs.
        inputs: shape (sample, feature).
    """
    wanted = "a `BiasedTwoLayer` or `BiasedThreeLayer`"
    for name, network in (("model", model), ("start", start)):
        check_kind(name, network, (BiasedTwoLayer, BiasedThreeLayer), wanted)
    inputs = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    return model.outputs(inputs) - pseudo_outputs(model, inputs, signs(start, inputs))


@double
def cross_coefficients(
    model: BiasedThreeLayer, inputs, frozen: Signs, first_move, second_move
) -> Float[Array, "sample *output first"]:
    r"""$c_q = [aD_vV'']_q[D_w(Wx+b_1)]_q + [aD_vV]_q[D_wW''x]_q$: the cross term of a signed move
    is $g' = \eta\sum_qs_qc_q$.

    Hence $\mathbb E_\Sigma g' = 0$ and $\mathrm{Var}_\Sigma g' = \eta^2\sum_qc_q^2$ exactly (Lemma
    5.5); no signs are sampled. $W$, $V$ are the model's weights.

    Args:
        model: with weights $W$, $V$.
        inputs: $x$, shape (sample, feature).
        frozen: $D_w$ and $D_v$.
        first_move, second_move: $W''$ (m1, d) and $V''$ (m2, m1).
    """
    inputs = model.embed(real_array("inputs", inputs, "(sample, feature)"))
    w, v = model.first + model.first_increment, model.second + model.second_increment
    z = frozen.first * (inputs @ w.T + model.first_bias)
    moved = frozen.first * (inputs @ jnp.asarray(first_move).T)
    weighted = second_signs(frozen)[:, None, :] * jnp.atleast_2d(model.output)
    c = (weighted @ jnp.asarray(second_move)) * z[:, None, :] + (weighted @ v) * moved[:, None, :]
    return model.scale * (c[:, 0] if model.output.ndim == 1 else c)


@double
def cross_variance(
    model: BiasedThreeLayer, inputs, frozen: Signs, first_move, second_move, rate=1.0
) -> Float[Array, " sample *output"]:
    r"""$\mathrm{Var}_\Sigma g' = \eta^2\sum_qc_q^2$, exact; $\eta$ = `rate`.

    Args:
        model: with weights $W$, $V$.
        inputs: $x$, shape (sample, feature).
        frozen: $D_w$ and $D_v$.
        first_move, second_move: $W''$ (m1, d) and $V''$ (m2, m1).
        rate: $\eta$.
    """
    return rate**2 * jnp.sum(
        cross_coefficients(model, inputs, frozen, first_move, second_move) ** 2, axis=-1
    )


@double
def signed_move(
    model: BiasedThreeLayer, first_move, second_move, diagonal, rate: float | Array = 1.0
) -> BiasedThreeLayer:
    r"""The model at $W + \eta\Sigma W''$, $V + \eta V''\Sigma$, $\Sigma = \mathrm{diag}(s)$ with
    $s$ = `diagonal`.

    Args:
        model: with weights $W$, $V$.
        first_move, second_move: $W''$ (m1, d) and $V''$ (m2, m1).
        diagonal: $s$, shape (m1,).
        rate: $\eta$.
    """
    check_number("rate", rate)
    s = real_array("diagonal", diagonal, f"({model.widths[0]},)")
    first_move = real_array("first_move", first_move, str(model.first.shape))
    second_move = real_array("second_move", second_move, str(model.second.shape))
    w = model.first_increment + rate * s[:, None] * first_move
    v = model.second_increment + rate * second_move * s
    return with_parameters(model, {"first_increment": w, "second_increment": v})


@double
def smoothed_pair(
    model: BiasedThreeLayer,
    inputs,
    first_noise,
    second_noise,
    first_move,
    second_move,
    diagonal,
    rate,
) -> tuple[Float[Array, " sample *output"], Float[Array, " sample *output"]]:
    r"""$P$ and $P'$ of (44), (45): both at the noisy moved weights, $P$ with their own signs, $P'$
    with those of the noisy unmoved point.

    Corrected: (44), (45) leave $\Sigma$ out. $\mathbb E_\rho|P - P'|/\eta^2$ stays bounded as
    $\eta \to 0$ (Lemma 5.7).

    Args:
        model: with weights $W$, $V$.
        inputs: $x$, shape (sample, feature).
        first_noise, second_noise: $W^\rho$ (m1, d) and $V^\rho$ (m2, m1).
        first_move, second_move: $W''$ and $V''$, likewise.
        diagonal: $s$ of $\Sigma$, shape (m1,).
        rate: $\eta$.
    """
    noisy = eqx.tree_at(
        lambda m: (m.first, m.second),
        model,
        (model.first + jnp.asarray(first_noise), model.second + jnp.asarray(second_noise)),
    )
    moved = signed_move(noisy, first_move, second_move, diagonal, rate)
    return moved.outputs(inputs), pseudo_outputs(moved, inputs, signs(noisy, inputs))


@double
def coupled_main_part(
    model: BiasedThreeLayer, inputs, first_move, second_move
) -> Float[Array, " sample *output"]:
    r"""The main part of (47): $aD_v(V_0D_w(W_0x+b_1)+b_2) + aD_vV'D_wW'x$, signs and base at the
    model's weights.

    Lemma 5.8: $f(W_0+\Sigma W', V_0+V'\Sigma)$ differs from it by
    $\tilde O(\tau_w^{16/5}m_1^{4/5}m_2^{3/2} + \sqrt{m_2/m_1}\,\tau_v)$.

    Args:
        model: with weights $W_0$, $V_0$.
        inputs: $x$, shape (sample, feature).
        first_move, second_move: $W'$ (m1, d) and $V'$ (m2, m1).
    """
    frozen = signs(model, inputs)
    return model.outputs(inputs) + pseudo_outputs(
        model, inputs, frozen, first=first_move, second=second_move, biases="none"
    )


class SignChange(AbstractObservable):
    """Fraction of a layer's signs changed since the start, over the training inputs (or the first
    `samples`).

    Args:
        layer: "first" or "second".
        samples: only the first so many training inputs.
    """

    layer: str = eqx.field(static=True)
    samples: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True)
    label: str = eqx.field(static=True)
    axes: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, layer: str = "first", samples: int | None = None):
        check_choice("layer", layer, ("first", "second"))
        check_samples(samples)
        self.layer, self.samples = layer, samples
        self.name, self.label, self.axes = (
            f"sign_change_{layer}",
            f"fraction of {layer}-layer signs changed",
            (),
        )

    def __call__(self, snapshot):
        return sign_changes(snapshot.model, snapshot.start, probe_features(snapshot, self.samples))[
            self.layer
        ]


class CouplingError(AbstractObservable):
    """Root mean square of network minus pseudo network (signs of the start) over the training
    inputs.

    Args:
        samples: only the first so many training inputs.
    """

    samples: int | None = eqx.field(static=True, default=None)
    name: str = eqx.field(static=True, default="coupling_error")
    label: str = eqx.field(static=True, default="rms |f - g|")
    axes: tuple[str, ...] = eqx.field(static=True, default=())

    def __check_init__(self):
        check_samples(self.samples)

    def __call__(self, snapshot):
        error = coupling_error(
            snapshot.model, snapshot.start, probe_features(snapshot, self.samples)
        )
        return jnp.sqrt(jnp.mean(error**2))
