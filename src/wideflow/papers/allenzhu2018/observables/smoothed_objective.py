r"""The smoothed objectives of allenzhu2018's analysis, (24) and (372), with common random numbers.

$L'(\lambda, W, V) = \mathbb E_{\rho,\mathcal Z}[L(\lambda F(x; W_0+W^\rho+W, V_0+V^\rho+V), y)] +
R(W, V)$; every value below uses the same noise draws, so that differences between nearby points are
not drowned in sampling noise.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ...._core.errors import check_count
from ...._core.precision import AbstractResult, double
from ...._core.randomness import named_key
from ...._core.types import Key
from ....data.dataset import Dataset
from ....dynamics.losses import AbstractLoss
from ..models.biased_three_layer import BiasedThreeLayer
from ..smoothed_sgd import SmoothedSGD
from .pseudo import signed_move


class DescentTriple(AbstractResult):
    r"""$c_1 = \mathbb E_\Sigma L'(\lambda, W+\sqrt\eta\Sigma W^\star, V+\sqrt\eta V^\star\Sigma)$,
    $c_2 = L'((1-\eta)\lambda, W, V)$, $c_3 = L'(\lambda, W, V)$ of Lemma 5.3.

    Attributes:
        moved: $c_1$.
        shrunk: $c_2$.
        here: $c_3$.
    """

    moved: Float[Array, ""]
    shrunk: Float[Array, ""]
    here: Float[Array, ""]


@double
def smoothed_objective(
    key: Key,
    model: BiasedThreeLayer,
    data: Dataset,
    loss: AbstractLoss,
    dynamics: SmoothedSGD,
    draws: int,
) -> Float[Array, ""]:
    r"""$L'$ at the model (its `scale` is $\lambda$), over `draws` noise draws; noise levels and
    regulariser are those of `dynamics`.

    For dynamics of variant 2 it is $L''$ of (372): each draw also has its own $\Sigma$,
    $W \to \Sigma W$, $V \to V\Sigma$.

    Args:
        model: a `BiasedThreeLayer`, where $L'$ is taken.
        data: the training set.
        loss: $L$.
        dynamics: a `SmoothedSGD`.
        draws: how many.
    """
    check_count("draws", draws)
    objective = data.objective(loss, model)
    penalty, _ = dynamics.regulariser(model.first_increment, model.second_increment, model.scale)

    def one(j):
        noisy = _noisy(key, j, model, dynamics)
        if dynamics.variant == 2:
            still = eqx.tree_at(
                lambda m: (m.first_increment, m.second_increment),
                noisy,
                replace_fn=jnp.zeros_like,
            )
            moves = (model.first_increment, model.second_increment)
            noisy = signed_move(still, *moves, _signs(key, j, model))
        return objective.value(noisy)

    return jnp.mean(jax.lax.map(one, jnp.arange(draws))) + penalty


@double
@eqx.filter_jit
def descent_triple(
    key: Key,
    model: BiasedThreeLayer,
    data: Dataset,
    loss: AbstractLoss,
    dynamics: SmoothedSGD,
    first_star,
    second_star,
    rate,
    draws: int,
) -> DescentTriple:
    r"""The three values of Lemma 5.3 at step $\eta$ = `rate` along $W^\star, V^\star$; each draw
    has its own $\Sigma$, used together with $-\Sigma$.

    Args:
        model: at $W$, $V$, with `scale` $\lambda$.
        data: the training set.
        loss: $L$.
        dynamics: gives the noise levels and the regulariser of $L'$.
        first_star, second_star: $W^\star$ (m1, d) and $V^\star$ (m2, m1).
        rate: $\eta$.
        draws: of the noise and of $\Sigma$.
    """
    objective = data.objective(loss, model)
    root = jnp.sqrt(rate)

    def penalty(m):
        return dynamics.regulariser(m.first_increment, m.second_increment, m.scale)[0]

    def one(j):
        noisy = _noisy(key, j, model, dynamics)
        s = _signs(key, j, model)
        both = [signed_move(noisy, first_star, second_star, sign * s, root) for sign in (1.0, -1.0)]
        moved = sum(objective.value(m) + penalty(m) for m in both) / 2
        shrunk = eqx.tree_at(lambda m: m.scale, noisy, (1 - rate) * noisy.scale)
        return (
            moved,
            objective.value(shrunk) + penalty(shrunk),
            objective.value(noisy) + penalty(noisy),
        )

    return DescentTriple(*(jnp.mean(v) for v in jax.lax.map(one, jnp.arange(draws))))


def _signs(key, j, model: BiasedThreeLayer) -> Array:
    draw = jax.random.fold_in(named_key(key, "signs"), j)
    return jax.random.rademacher(draw, model.first_bias.shape, model.first.dtype)


def _noisy(key, j, model: BiasedThreeLayer, dynamics: SmoothedSGD) -> BiasedThreeLayer:
    draw = jax.random.fold_in(named_key(key, "smoothing"), j)
    first = dynamics.first_smoothing * jax.random.normal(
        named_key(draw, "first"), model.first.shape, model.first.dtype
    )
    second = dynamics.second_smoothing * jax.random.normal(
        named_key(draw, "second"), model.second.shape, model.second.dtype
    )
    return eqx.tree_at(
        lambda m: (m.first, m.second), model, (model.first + first, model.second + second)
    )
