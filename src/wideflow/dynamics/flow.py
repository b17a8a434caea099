r"""Gradient flow $\dot\theta = -c\,\nabla L(\theta)$."""

import dataclasses

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .._core.activations import Activation
from .._core.errors import check_choice, check_count, check_positive
from .._core.precision import cast, double
from .._core.trees import parameters, with_parameters
from ..data.objective import DatasetObjective
from ..models.shallow import Shallow
from .base import AbstractFlow
from .gram_flow import advance_by_gram, largest_rate
from .gram_step import GramProblem
from .reduced_inputs import reduced
from .spectral_action import Dense, Krylov
from .tangents import tangents_of

SOLVERS = {"tsit5": diffrax.Tsit5, "dopri8": diffrax.Dopri8, "kvaerno5": diffrax.Kvaerno5}
SMOOTH_TOLERANCE, KINKED_TOLERANCE = 1e-8, 1e-2
DENSE_ENTRIES = 3000  # above it an eigen decomposition costs more than Lanczos on the Jacobian


class FlowState(eqx.Module):
    """What a flow carries from one recording time to the next.

    `steps` and `evaluations` (forward passes of the network) so far; `size`, the next step of the exponential flow; `rate`, the
    fastest decay at the start; `spent`, explicit steps of `auto` so far; why it cannot (`failed`) or need not (`stationary`) go on.
    """

    steps: Int[Array, ""]
    evaluations: Int[Array, ""]
    size: Float[Array, ""]
    rate: Float[Array, ""]
    spent: Int[Array, ""]
    failed: Array
    stationary: Array


class GradientFlow(AbstractFlow):
    r"""The flow itself.

    Args:
        tolerance: the error allowed per step: relative to the parameters for Diffrax's solvers, to the output gradient (the residual,
            for squared losses) for the exponential flow. Default: 1e-8, and 1e-2 for the exponential flow of kinked activations,
            whose solution is one in Filippov's sense ("auto" never asks it for less: chatter would only cost steps).
        method: "gram" (the exponential flow: dense for up to 3000 entries sample x output, else "krylov"), "krylov", one of
            Diffrax's "tsit5", "dopri8", "kvaerno5", or "auto".
        depth: of the Krylov spaces.
        most_steps: per recording interval; beyond it the run stops as stalled.

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
        self, tolerance: float | None = None, method: str = "auto", depth: int = 40,
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
        rate = jnp.asarray(jnp.nan)
        if self.method == "auto" and isinstance(objective, DatasetObjective):
            problem, theta = self._problem(*_wide(model, objective))
            rate = largest_rate(problem, problem.place(theta))
        return FlowState(zero, zero, jnp.asarray(jnp.nan), rate, zero, no, no)

    def advance(self, model, state, objective, start, stop):
        start, stop = jnp.asarray(start, float), jnp.asarray(stop, float)
        if self.method in SOLVERS or not isinstance(objective, DatasetObjective):
            if self.method in ("gram", "krylov"):
                raise ValueError(
                    f"`method` {self.method!r} needs training points, but the run is on an exact population; "
                    "use `method='tsit5'` or train on a `Dataset`."
                )
            return self._explicit(model, state, objective, start, stop, self.most_steps)
        if self.method == "auto":
            model, state, start = self._explicit_share(model, state, objective, start, stop)
        return self._gram(model, state, objective, start, stop)

    def _explicit(self, model, state, objective, start, stop, most_steps):
        factors = model.rate_factors()

        def field(_, theta, __):
            _, gradient = objective.gradient(with_parameters(model, theta))
            return {name: -factors[name] * gradient[name] for name in theta}

        name = self.method if self.method in SOLVERS else "tsit5"
        tolerance = self.tolerance or SMOOTH_TOLERANCE
        controller = diffrax.PIDController(rtol=tolerance, atol=tolerance * 1e-3)
        span = stop - start
        first = jnp.where(jnp.isfinite(state.size), jnp.minimum(state.size, span), 1e-3 * span)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field), SOLVERS[name](), start, stop, first, parameters(model),
            stepsize_controller=controller, max_steps=most_steps, throw=False,
            saveat=diffrax.SaveAt(t1=True),
        )  # fmt: skip
        theta = {name: values[-1] for name, values in solution.ys.items()}
        taken, tried = solution.stats["num_accepted_steps"], solution.stats["num_steps"]
        new = dataclasses.replace(
            state, steps=state.steps + taken, evaluations=state.evaluations + 6 * tried,
            size=jnp.where(taken > 0, span / jnp.maximum(taken, 1), state.size), spent=state.spent + tried,
            failed=state.failed | (solution.result != diffrax.RESULTS.successful),
        )  # fmt: skip
        return with_parameters(model, theta), new

    def _explicit_share(self, model, state, objective, start, stop):
        """The stretch up to which an explicit solver is the cheaper one; nothing of it if it fails there."""
        tolerance = self.tolerance or self._tolerance(model)
        budget = _relative_cost(model, objective) * 3 * (20 + 1.5 * tolerance ** (-1 / 3))
        limit = 32 + int(budget / 3)
        switch = jnp.clip(budget / (2 * state.rate), start, stop)
        switch = jnp.where(state.spent < limit, switch, start)
        moved, new = self._explicit(model, state, objective, start, switch, limit)
        good = ~new.failed | state.failed
        kept = jax.tree.map(
            lambda a, b: jnp.where(good, a, b), parameters(moved), parameters(model)
        )
        spent = dataclasses.replace(state, spent=jnp.asarray(limit), evaluations=new.evaluations)
        state = jax.tree.map(lambda a, b: jnp.where(good, a, b), new, spent)
        return with_parameters(model, kept), state, jnp.where(good, switch, start)

    def _gram(self, model, state, objective, start, stop):
        small, fewer, whole = _wide(model, objective)
        problem, theta = self._problem(small, fewer, whole)
        kinked = has_kinks(model)
        structured = kinked and isinstance(model, Shallow)
        leg = advance_by_gram(
            problem, theta, start, stop, state.size, tolerance=self._tolerance(model), kinked=kinked,
            structured=structured, most_steps=self.most_steps,
        )  # fmt: skip
        stationary = leg.stationary & ~state.failed
        passes = 2 if structured else 3
        new = dataclasses.replace(
            state, steps=state.steps + leg.steps, size=leg.size,
            evaluations=state.evaluations + passes * leg.tried + 1,
            failed=state.failed | ((leg.time < stop) & ~stationary),
            stationary=state.stationary | stationary,
        )  # fmt: skip
        moved = parameters(whole(with_parameters(small, leg.place.theta)))
        kept = {name: moved[name].astype(old.dtype) for name, old in parameters(model).items()}
        return with_parameters(model, kept), new

    def _problem(self, small, objective, _):
        entries = objective.targets.size
        dense = self.method != "krylov" and entries <= DENSE_ENTRIES
        action = Dense() if dense else Krylov(self.depth)
        tangents = tangents_of(small, objective.features)
        targets = jnp.asarray(objective.targets)
        problem = GramProblem(tangents, targets, objective.loss, action)
        return problem, parameters(small)

    def _tolerance(self, model) -> float:
        """Of the exponential flow."""
        if not has_kinks(model):
            return self.tolerance or SMOOTH_TOLERANCE
        if self.method == "auto":
            return max(self.tolerance or 0.0, KINKED_TOLERANCE)
        return self.tolerance or KINKED_TOLERANCE


def _wide(model, objective):
    """In 64 bit and in the fewest coordinates, with the way back."""
    return reduced(cast(model, "float64"), cast(objective, "float64"))


def _relative_cost(model, objective) -> float:
    """A stage of the exponential flow in units of one gradient, by counting operations."""
    samples, entries = objective.features.shape[0], objective.targets.size
    size = sum(leaf.size for leaf in parameters(model).values())
    if isinstance(model, Shallow):
        gradient = 4.0 * samples * (size + 5 * model.width)
        gram = 2.0 * entries**2 * model.width
    else:
        gradient, gram = 4.0 * samples * size, 4.0 * entries * samples * size
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
