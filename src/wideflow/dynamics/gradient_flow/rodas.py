r"""A step with the whole Hessian, for neurons that settle faster than the residual moves: the
Rosenbrock method RODAS (hairer1996, section VI.4).

Order four, stiffly accurate and L-stable, with an embedded method of order three and a path of
order three inside the step. One factorisation serves its six stages
$(\frac1{\gamma h} + c\nabla^2L)\,U_i = F(\theta + \sum_j a_{ij}U_j) + \sum_j\frac{c_{ij}}hU_j$,
$F = -cJ^\top g$.

The whole Hessian of a squared loss of a shallow network is the Gram part and one block a neuron,
$$\nabla^2L = \kappa J^\top J + \bigoplus_j B_j,\qquad B_j = \sum_i (g_i\cdot
  s_jA_j)\,\sigma''(z_{ij})\,\phi_i\phi_i^\top .$$
The blocks are how fast a neuron settles while the residual stands still. Exponentials of the Gram
matrix do not know them; where they decide the step, a solve with the whole costs a Gram matrix
weighted neuron by neuron and its Cholesky factor (Woodbury's formula).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float

from ..._core.node_products import symmetric_product
from .jacobian import ShallowJacobian
from .linearisation import GramProblem, Linearisation, UniformHessian
from .step_base import AbstractDenseStep, StepResult

Weights = Float[Array, "embedded width"]
Blocks = Float[Array, "width embedded embedded"]

FAR = 0.8  # of the shift (chosen); at 1 lies the pole
GAMMA, EVALUATIONS = 0.25, 7  # the method's own; its tables below are those of hairer1996's code


def _table(*rows: tuple[float, ...]) -> np.ndarray:
    """Rows of different lengths, zeros behind them."""
    return np.array([(*row, *[0.0] * (6 - len(row))) for row in rows])


STAGES = _table(
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
)
COUPLINGS = _table(
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (
        8.083246795921522,
        -7.981132988064893,
        -31.52159432874371,
        16.31930543123136,
        -6.058818238834054,
    ),
)
INSIDE = _table(
    (
        10.12623508344586,
        -7.487995877610167,
        -34.80091861555747,
        -7.992771707568823,
        1.025137723295662,
    ),
    (
        -0.6762803392801253,
        6.087714651680015,
        16.43084320892478,
        24.76722511418386,
        -6.594389125716872,
    ),
)


class Rodas(AbstractDenseStep):
    """Order four; seven forward passes, none for the path inside. For shallow networks, smooth
    activations and squared losses.
    """

    def __call__(self, problem, start, size):
        solve = shifted_solver(problem, start, 1 / (GAMMA * size))
        weights = start.theta["weights"]
        stages, couplings = jnp.asarray(STAGES), jnp.asarray(COUPLINGS)

        def stage(i, carry):
            moves, _ = carry
            theta = {"weights": weights + _sum(stages[i], moves)}
            outputs, jacobian = problem.operator.linearise(theta)
            g = problem.loss.value_and_gradient(outputs, problem.targets)[1]
            force = -problem.operator.vjp(jacobian, g)["weights"]
            new = solve(force + _sum(couplings[i], moves) / size)
            return moves.at[i].set(new), g

        none = jnp.zeros((len(STAGES), *weights.shape), weights.dtype)
        # stiffly accurate: the last stage's argument is the embedded method's end, so its gradient
        # is the predicted one
        moves, embedded = jax.lax.fori_loop(0, len(STAGES), stage, (none, start.cotangent))
        end = problem.linearise({"weights": weights + _sum(STAGES[-1], moves) + moves[-1]})
        interpolant = tuple(_sum(row, moves) for row in INSIDE)
        return StepResult(end, embedded, end.loss, interpolant, jnp.asarray(EVALUATIONS))

    def empty_interpolant(self, problem, start):
        return tuple(jnp.zeros_like(start.theta["weights"]) for _ in INSIDE)

    def interpolate(self, problem, start, end, interpolant, size, time):
        share = time / size
        before, after = start.theta["weights"], end.theta["weights"]
        first, second = interpolant
        off_chord = (1 - share) * (first + share * second)
        return {"weights": (1 - share) * before + share * (after + off_chord)}


def _sum(weights, moves):
    return jnp.tensordot(weights, moves, 1)


def blocks(network: ShallowJacobian, start: Linearisation) -> Blocks:
    r"""$cB_j$."""
    x = network.features
    second = network.activation.bend(network.preactivations(start.theta))
    weights = second * network.spread(start.cotangent)
    # all blocks in one product (width, sample) x (sample, embedded^2)
    pairs = (x[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return network.factor * (weights.T @ pairs).reshape(-1, x.shape[1], x.shape[1])


def largest_norm(network: ShallowJacobian, start: Linearisation) -> Float[Array, ""]:
    r"""$\max_j|cB_j|$ (Frobenius), a bound on how fast any neuron settles or leaves."""
    return jnp.sqrt(jnp.max(jnp.sum(blocks(network, start) ** 2, axis=(1, 2))))


def shifted_solver(
    problem: GramProblem, start: Linearisation, shift: Float[Array, ""] | float
) -> Callable[[Weights], Weights]:
    r"""$v \mapsto (\text{shift} + c\nabla^2L)^{-1}v$.

    Negative curvature counts up to `FAR` of the shift: beyond the pole growth would come out as
    decay. A neuron that leaves faster is for the error estimate, which sees it only as far as the
    outputs do.
    """
    network, hessian = problem.operator, start.hessian
    assert isinstance(network, ShallowJacobian)
    assert isinstance(hessian, UniformHessian)  # of a squared loss
    kappa = hessian.kappa
    # D = shift + cB is block-diagonal, with D^-1 = R^T R; the Gram part c kappa J^T J is added by
    # Woodbury's formula, (D + J^T J)^-1 = D^-1 - D^-1 J^T (I + J D^-1 J^T)^-1 J D^-1, whose inner
    # matrix is the product of `rows` = J R^T with itself
    # sums of phi phi^T are symmetric, and eigh reads one triangle alone
    values, vectors = jnp.linalg.eigh(blocks(network, start), symmetrize_input=False)
    values = shift + jnp.maximum(values, -FAR * shift)
    root = jnp.swapaxes(vectors / jnp.sqrt(values)[:, None, :], 1, 2)
    # R = diag(values)^(-1/2) V^T for every neuron
    inverse = jnp.einsum("jba,jbc->jac", root, root)
    scale = jnp.sqrt(network.factor * kappa)
    features = (
        scale * start.jacobian[:, :, None] * jnp.einsum("ia,jba->ijb", network.features, root)
    )
    mixed = jnp.atleast_2d(network.mixed)
    # row (i, k): sqrt(c kappa) s_j A_kj sigma'(z_ij) R_j phi_i over all neurons j
    rows = (features[:, None] * mixed[:, :, None]).reshape(start.outputs.size, -1)
    factor = cho_factor(symmetric_product(rows) + jnp.eye(len(rows), dtype=rows.dtype))

    def solve_blocks(v: Weights) -> Weights:
        return jnp.einsum("jab,bj->aj", inverse, v)

    def solve(v: Weights) -> Weights:
        alone = solve_blocks(v)
        outputs = network.jvp(start.jacobian, {"weights": alone})
        shared = cho_solve(factor, outputs.ravel()).reshape(outputs.shape)
        # `vjp` brings the factor c, so that kappa c J^T is whole
        return alone - kappa * solve_blocks(network.vjp(start.jacobian, shared)["weights"])

    return solve
