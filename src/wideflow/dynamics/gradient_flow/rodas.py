r"""A step with the whole Hessian, for neurons that settle faster than the residual moves: the Rosenbrock method RODAS (hairer1996, section VI.4).

Order four, stiffly accurate and L-stable, with an embedded method of order three and a path of order three inside the step. One
factorisation serves its six stages $(\frac1{\gamma h} + c\nabla^2L)\,U_i = F(\theta + \sum_j a_{ij}U_j) + \sum_j\frac{c_{ij}}hU_j$, $F = -cJ^\top g$.
"""

import jax
import jax.numpy as jnp
import numpy as np

from .hessian_blocks import shifted_solver
from .step_base import AbstractDenseStep, StepResult

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
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)  # fmt: skip
INSIDE = _table(
    (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662),
    (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872),
)  # fmt: skip


class Rodas(AbstractDenseStep):
    """Order four; seven forward passes, none for the path inside. For shallow networks, smooth activations and squared losses."""

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
        # stiffly accurate: the last stage's argument is the embedded method's end, so its gradient is the predicted one
        moves, embedded = jax.lax.fori_loop(0, len(STAGES), stage, (none, start.cotangent))
        end = problem.linearise({"weights": weights + _sum(STAGES[-1], moves) + moves[-1]})
        interpolant = tuple(_sum(row, moves) for row in INSIDE)
        return StepResult(end, embedded, end.loss, interpolant, jnp.asarray(EVALUATIONS))

    def interpolate(self, problem, start, end, interpolant, size, time):
        share = time / size
        before, after = start.theta["weights"], end.theta["weights"]
        first, second = interpolant
        off_chord = (1 - share) * (first + share * second)
        return {"weights": (1 - share) * before + share * (after + off_chord)}


def _sum(weights, moves):
    return jnp.tensordot(weights, moves, 1)
