r"""Deep linear networks: the field theory without Monte Carlo, closed matrix equations for the
kernels.

With $\phi(h) = h$ the fields are linear in the Gaussian sources: over all (step, point) rows,
$$h = R\,(u + C r), \qquad z = r + D h, \qquad R = (I - C D)^{-1},$$
hence $\Phi^l = R (\Phi^{l-1} + C G^{l+1} C^\top) R^\top$, $G^l = \langle z z^\top \rangle$,
$\bar A^l = R C$, $\bar B^{l-1} = D R$ and
$f = \mathrm{diag} \langle z^L h^{L\top} \rangle / \gamma_0$. They are solved by substitution over
the whole history: all is causal, so a sweep makes one more step exact; one sweep more than there
are steps gives the residual.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from ..._core.errors import check_count, check_positive
from ..._core.precision import AbstractResult, double
from .arguments import checked_data, half_square
from .loss_estimate import summed_loss

TOLERANCE = 1e-12  # of the largest entry: the equations are solved to rounding


class LinearFieldTheory(AbstractResult):
    r"""The kernels of a deep linear network; rows are ordered by (step, point).

    Attributes:
        times: of the steps, shape (step,).
        outputs: $f$, shape (step, point).
        losses: shape (step,).
        features: $\Phi^l$, shape (layer, step, point, step, point).
        gradients: $G^l$, likewise.
        residual: the relative change in the last sweep.
        converged: whether it fell below the tolerance.
    """

    times: jax.Array
    outputs: jax.Array
    losses: jax.Array
    features: jax.Array
    gradients: jax.Array
    residual: float
    converged: bool


@double
def linear_field_theory(
    inputs, targets, *, depth: int = 2, rate=0.1, steps: int = 20, richness=1.0, test=None
) -> LinearFieldTheory:
    r"""The infinite-width limit of a deep linear network under descent, exactly.

    Args:
        inputs, targets, test: as in `field_theory`.
        depth: $L$, hidden layers.
        rate, steps: $\eta$ and the number of steps.
        richness: $\gamma_0$.
    """
    check_count("depth", depth)
    check_count("steps", steps, least=0)
    check_positive("rate", rate)
    check_positive("richness", richness)
    gram, targets = checked_data(inputs, targets, test)
    state, residual, converged = _sweeps(
        gram, targets, depth, jnp.asarray(rate, float), steps, jnp.asarray(richness, float)
    )
    outputs, features, gradients = state
    shape = (depth, steps + 1, len(gram), steps + 1, len(gram))
    return LinearFieldTheory(
        rate * jnp.arange(steps + 1.0),
        outputs,
        _losses(outputs, targets),
        features.reshape(shape),
        gradients.reshape(shape),
        float(residual),
        bool(converged),
    )


@eqx.filter_jit
def _losses(outputs, targets):
    return summed_loss(half_square, outputs[:, : len(targets)], targets)


@eqx.filter_jit
def _sweeps(gram, targets, depth, rate, steps, richness):
    points, count = len(gram), steps + 1
    rows = points * count
    # the step that a row belongs to
    place = jnp.arange(rows) // points
    before = place[None, :] < place[:, None]
    eye, ones = jnp.eye(rows), jnp.ones((rows, rows))
    still = jnp.tile(gram, (count, count))

    def sweep(number, state):
        # Errors of steps that are not yet exact are left out: they could grow without bound before
        # they are corrected.
        outputs, features, gradients, forward, backward = state
        # test points are carried along with error 0: nothing is learnt from them
        errors = jnp.zeros((count, points))
        errors = errors.at[:, : len(targets)].set(targets - outputs[:, : len(targets)]).ravel()
        weights = rate * richness * errors * before * (place < number)
        features, gradients, forward, backward = map(list, (features, gradients, forward, backward))
        for l in [*range(depth), *reversed(range(depth))]:
            below = still if l == 0 else features[l - 1]
            above = ones if l == depth - 1 else gradients[l + 1]
            c = below * weights + (0.0 if l == 0 else forward[l - 1])
            d = above * weights + (0.0 if l == depth - 1 else backward[l + 1])
            # C and D reach earlier steps alone, so C D is nilpotent and I - C D has the determinant
            # 1
            solve = jnp.linalg.inv(eye - c @ d)
            cross = solve @ c @ above  # <h r>
            features[l] = solve @ (below + c @ above @ c.T) @ solve.T
            mixed = d @ cross
            gradients[l] = above + mixed + mixed.T + d @ features[l] @ d.T
            forward[l], backward[l] = solve @ c, d @ solve
            if l == depth - 1:
                outputs = jnp.diagonal(cross.T + d @ features[l]) / richness
        return outputs.reshape(count, points), *map(
            jnp.stack, (features, gradients, forward, backward)
        )

    zeros = jnp.zeros((depth, rows, rows))
    state = jnp.zeros((count, points)), zeros, zeros, zeros, zeros
    state = jax.lax.fori_loop(0, count, sweep, state)
    checked = sweep(count, state)
    change = jnp.array(
        [jnp.max(jnp.abs(a - b)) / (1 + jnp.max(jnp.abs(b))) for a, b in zip(checked, state)]
    )
    return checked[:3], jnp.max(change), jnp.max(change) <= TOLERANCE
