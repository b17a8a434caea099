r"""Gradient flow $\dot\theta = -c\,\nabla L(\theta)$."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.activations import Activation
from .._core.errors import check_choice, check_count, check_positive
from .._core.precision import cast, double
from .._core.trees import parameters, with_parameters, zeros_of
from ..data.objective import DatasetObjective
from ..models.shallow import Shallow
from .base import AbstractFlow
from .gradient_flow.diffrax_solver import SOLVERS, ExplicitSolver, ExplicitState
from .gradient_flow.exponential_integrator import GramSolver, GramState, largest_rate
from .gradient_flow.jacobian import ShallowTangents, tangents_of
from .gradient_flow.linearisation import GramProblem
from .gradient_flow.matrix_functions import AbstractAction, Dense, Krylov
from .gradient_flow.reduced_inputs import reduced
from .gradient_flow.sliding_jacobian import HeldTangents

SMOOTH_TOLERANCE, KINKED_TOLERANCE = 1e-8, 1e-3
PRODUCTS = 50  # that Lanczos takes for a stage, on the plant and MNIST
EASY = 32  # explicit attempts before "auto" asks how stiff the problem is
DENSE_ENTRIES = 3000  # above it an eigen decomposition costs more than Lanczos on the Jacobian


class FlowState(eqx.Module):
    """What a flow carries from one recording time to the next.

    `steps` and `evaluations` (forward passes of the network) so far; `rate`, the fastest decay, once "auto" has asked for it; the solvers' last steps, which
    may reach beyond the recording time; whether the exponential flow has taken over; why the run cannot (`failed`) or need not
    (`stationary`) go on.
    """

    steps: Int[Array, ""]
    evaluations: Int[Array, ""]
    rate: Float[Array, ""]
    explicit: ExplicitState | None
    gram: GramState | None
    by_gram: Array
    failed: Array
    stationary: Array


class GradientFlow(AbstractFlow):
    r"""The flow itself.

    Args:
        tolerance: the error allowed per step: relative to the parameters for Diffrax's solvers, to the output gradient (the residual,
            for squared losses) for the exponential flow. Default: 1e-8, and 1e-3 for the exponential flow of kinked activations,
            whose solution is one in Filippov's sense ("auto" never asks it for less: chatter would only cost steps).
        method: "gram" (the exponential flow: dense for up to 3000 entries sample x output, else "krylov"), "krylov", one of
            Diffrax's "tsit5", "dopri8", "kvaerno5", or "auto".
        depth: of the Krylov spaces at most; they grow until nothing is missing.
        most_steps: per recording interval; beyond it the run stops as stalled.

    Steps do not end at recording times: what is recorded in between comes from the step's own formula, so that recording often costs
    little and changes nothing.

    "auto" starts with the explicit `tsit5` and goes over to the exponential flow once the explicit solver has done as much work as the
    exponential flow is expected to need; on easy problems that moment never comes, on stiff ones little is lost. Populations,
    which have no training points and hence no Gram matrix, stay with `tsit5`.
    """

    tolerance: float | None = eqx.field(static=True)
    method: str = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    most_steps: int = eqx.field(static=True)

    @double
    def __init__(
        self, tolerance: float | None = None, method: str = "auto", depth: int = 200,
        most_steps: int = 1_000_000,
    ):  # fmt: skip
        if tolerance is not None:
            check_positive("tolerance", tolerance)
            tolerance = float(tolerance)
        check_choice("method", method, ("auto", "gram", "krylov", *SOLVERS))
        check_count("depth", depth, least=2)
        check_count("most_steps", most_steps)
        self.tolerance, self.method = tolerance, method
        self.depth, self.most_steps = depth, most_steps

    def init(self, model, objective, key):
        no, zero = jnp.zeros((), bool), jnp.zeros((), int)
        explicit, gram, rate = None, None, jnp.asarray(jnp.nan)
        method = self._method(objective)
        if method in SOLVERS:
            wide, fine = cast(model, "float64"), cast(objective, "float64")
            explicit = self._explicit(model).init(_field(wide, fine), parameters(wide), 0.0)
        else:
            small, fewer, _ = _wide(model, objective)
            begin = lambda theta: self._solver(model).init(self._problem(small, fewer), theta, 0.0)
            theta = parameters(small)
            if method == "auto":  # nothing of the exponential flow is computed before it is needed
                explicit = self._explicit(model).init(_field(small, fewer), theta, 0.0)
                gram = zeros_of(begin, theta)
            else:
                gram = begin(theta)
        count = zero + (1 if explicit is None else 2)
        return FlowState(zero, count, rate, explicit, gram, no, no, no)

    def advance(self, model, state, objective, start, stop):
        stop, method = jnp.asarray(stop, float), self._method(objective)
        if method in SOLVERS:
            solver = self._explicit(model)
            field = _field(cast(model, "float64"), cast(objective, "float64"))
            moved = solver.advance(field, state.explicit, stop, self.most_steps)
            theta = solver.between(moved, stop)
            return _rounded(model, theta), _noted(state, solver, moved, stop)
        small, fewer, whole = _wide(model, objective)
        if method == "auto":
            state = self._explicit_share(model, small, fewer, state, stop)
        theta, state = self._gram(model, small, fewer, state, stop)
        if method == "auto":
            inside = self._explicit(model).between
            theta = jax.lax.cond(state.by_gram, lambda: theta, lambda: inside(state.explicit, stop))
        return _rounded(model, parameters(whole(with_parameters(small, theta)))), state

    def _method(self, objective) -> str:
        if isinstance(objective, DatasetObjective):
            return self.method
        if self.method in ("gram", "krylov"):
            raise ValueError(
                f"`method` {self.method!r} needs training points, but the run is on an exact population; "
                "use `method='tsit5'` or train on a `Dataset`."
            )
        return self.method if self.method in SOLVERS else "tsit5"

    def _explicit(self, model) -> ExplicitSolver:
        name = self.method if self.method in SOLVERS else "tsit5"
        return ExplicitSolver(name, self.tolerance or SMOOTH_TOLERANCE)

    def _solver(self, model) -> GramSolver:
        return GramSolver(self._tolerance(model), has_kinks(model))

    def _explicit_share(self, model, small, fewer, state: FlowState, stop) -> FlowState:
        """Explicit steps for as long as they are the cheaper ones; then the exponential flow starts where they ended."""
        solver, gram, problem = self._explicit(model), self._solver(model), self._problem(small, fewer)  # fmt: skip
        field, before = _field(small, fewer), state.explicit
        stage = _relative_cost(small, fewer, problem.action)
        budget = stage * 3 * (20 + 1.5 * gram.tolerance ** (-1 / 3))
        until = jnp.where(state.by_gram, -jnp.inf, stop)
        first = solver.advance(field, before, until, jnp.maximum(EASY - before.tried, 0))
        hard = ~state.by_gram & (first.end < stop)
        asked = hard & jnp.isnan(state.rate)
        rate = jax.lax.cond(
            asked, lambda: largest_rate(problem, problem.place(first.theta)), lambda: state.rate
        )
        until = jnp.where(hard, jnp.minimum(stop, budget / (2 * rate)), -jnp.inf)
        left = EASY + int(budget / solver.passes) - first.tried
        moved = solver.advance(field, first, until, left)
        over = hard & (moved.end < stop)
        held = jax.lax.cond(
            over, lambda: gram.init(problem, moved.theta, moved.end), lambda: state.gram
        )
        spent = solver.passes * (moved.tried - before.tried)
        return dataclasses.replace(
            state, rate=rate, explicit=moved, gram=held, by_gram=state.by_gram | over,
            steps=state.steps + moved.steps - before.steps,
            evaluations=state.evaluations + spent + asked + over,
        )  # fmt: skip

    def _gram(self, model, small, fewer, state: FlowState, stop):
        """The exponential flow up to `stop`, where it is its turn."""
        solver, problem = self._solver(model), self._problem(small, fewer)

        def go():
            moved = solver.advance(problem, state.gram, stop, self.most_steps)
            theta, inside = solver.between(problem, moved, stop, self.most_steps)
            return theta, moved, moved.passes - state.gram.passes + inside

        if self.method == "auto":
            mine, wait = state.by_gram, lambda: (parameters(small), state.gram, jnp.zeros((), int))
            theta, moved, spent = jax.lax.cond(mine, go, wait)
        else:
            mine, (theta, moved, spent) = jnp.ones((), bool), go()
        reached = moved.end >= stop
        return theta, dataclasses.replace(
            state, gram=moved, steps=state.steps + moved.steps - state.gram.steps,
            evaluations=state.evaluations + spent,
            failed=state.failed | (mine & ~reached & ~moved.still),
            stationary=state.stationary | (mine & moved.still & (moved.end <= stop)),
        )  # fmt: skip

    def _problem(self, small, objective) -> GramProblem:
        entries = objective.targets.size
        dense = self.method != "krylov" and entries <= DENSE_ENTRIES
        action = Dense() if dense else Krylov(self.depth)
        tangents = tangents_of(small, objective.features)
        if isinstance(tangents, ShallowTangents) and has_kinks(small):
            tangents = HeldTangents(tangents)
        return GramProblem(tangents, jnp.asarray(objective.targets), objective.loss, action)

    def _tolerance(self, model) -> float:
        """Of the exponential flow."""
        if not has_kinks(model):
            return self.tolerance or SMOOTH_TOLERANCE
        if self.method == "auto":
            return max(self.tolerance or 0.0, KINKED_TOLERANCE)
        return self.tolerance or KINKED_TOLERANCE


def _field(model, objective):
    r"""$-c\,\nabla L$ as Diffrax takes it."""
    factors = model.rate_factors()

    def field(_, theta, __):
        _, gradient = objective.gradient(with_parameters(model, theta))
        return {name: -factors[name] * gradient[name] for name in theta}

    return field


def _noted(state: FlowState, solver: ExplicitSolver, moved: ExplicitState, stop) -> FlowState:
    spent = solver.passes * (moved.tried - state.explicit.tried)
    return dataclasses.replace(
        state, explicit=moved, steps=moved.steps, evaluations=state.evaluations + spent,
        failed=state.failed | (moved.end < stop),
    )  # fmt: skip


def _rounded(model, theta):
    """`model` at `theta`, in the precision that it came in."""
    kept = {name: theta[name].astype(old.dtype) for name, old in parameters(model).items()}
    return with_parameters(model, kept)


def _wide(model, objective):
    """In 64 bit and in the fewest coordinates, with the way back."""
    return reduced(cast(model, "float64"), cast(objective, "float64"))


def _relative_cost(model, objective, action: AbstractAction) -> float:
    """A stage of the exponential flow in units of one gradient, by counting operations."""
    samples, entries = objective.features.shape[0], objective.targets.size
    size = sum(leaf.size for leaf in parameters(model).values())
    if isinstance(model, Shallow):
        gradient = 4.0 * samples * (size + 5 * model.width)
        gram = 2.0 * entries**2 * model.width
    else:
        gradient, gram = 4.0 * samples * size, 4.0 * entries * samples * size
    if isinstance(action, Krylov):
        products = min(action.depth, PRODUCTS)
        return 1 + products * (1 + 8.0 * products * entries / gradient)
    return 1 + (gram + 30.0 * entries**3) / gradient


def has_kinks(thing) -> bool:
    """Whether any activation inside a model has a kink."""
    if isinstance(thing, Activation):
        return bool(thing.kinks)
    if isinstance(thing, tuple | list):
        return any(has_kinks(part) for part in thing)
    if dataclasses.is_dataclass(thing):
        return any(has_kinks(getattr(thing, f.name, None)) for f in dataclasses.fields(thing))
    return False
