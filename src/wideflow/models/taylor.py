r"""Taylor-expanded twins: a network replaced by its expansion in the parameters around where it
is.
"""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from .._core.errors import check_count
from .._core.precision import double
from .._core.trees import parameters, with_parameters
from .base import AbstractModel, Pullback, adaptive_rate_factors, pullback_by_autodiff

__all__ = ["Taylor", "taylor"]

MOST_ORDER = 10  # nested derivatives double in size with each: a thousand copies of the network


class Taylor(AbstractModel):
    r"""$\sum_{k \le K} \frac{1}{k!}\, D^k f_{\theta_0}(x)[\theta - \theta_0]^k$ as a model in
    $\theta$; see `taylor`.

    `model` carries $\theta$, `anchor` $\theta_0$.
    """

    model: AbstractModel
    anchor: AbstractModel
    order: int = eqx.field(static=True)

    @property
    def trained(self) -> tuple[str, ...]:
        return self.model.trained

    @property
    def input_shape(self):
        return self.model.input_shape

    def __getattr__(self, name: str):
        if name in ("model", "anchor", "order") or name.startswith("__"):
            raise AttributeError(name)  # read before it is set
        return getattr(self.model, name)

    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        return self.anchor.embed(inputs)

    def respond(self, features) -> Float[Array, " sample *output"]:
        start, now = parameters(self.anchor), parameters(self.model)
        direction = {name: now[name] - start[name] for name in start}

        def along(theta):
            return with_parameters(self.anchor, theta).respond(features)

        # the k-th derivative along the direction, by k nested forward derivatives
        total, factorial, function = along(start), 1, along
        for k in range(1, self.order + 1):
            function = _derivative(function, direction)
            factorial *= k
            # d^k/ds^k f(theta_0 + s direction) at s = 0 is D^k f[direction]^k
            total = total + function(start) / factorial
        return total

    def rate_factors(self) -> dict:
        return self.anchor.rate_factors()

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        return pullback_by_autodiff(self, features)


@adaptive_rate_factors.register
def _(model: Taylor) -> dict:
    return adaptive_rate_factors(model.anchor)


def _derivative(function, direction):
    return lambda theta: jax.jvp(function, (theta,), (direction,))[1]


@double
def taylor(model, order: int = 1) -> Taylor:
    """The expansion of `model` around its present parameters; order 1 is the linearised network. It
    trains like any model.

    Args:
        order: the highest power of the change of the parameters, at most ten.

    >>> import wideflow as wf
    >>> net = wf.Shallow([[1.0]], [1.0], activation="square")
    >>> twin = wf.taylor(net, order=2)
    >>> float(twin([3.0])), twin.trained
    (9.0, ('weights',))
    """
    check_count(
        "order", order, most=MOST_ORDER, remedy="Each order doubles the cost of the one before."
    )
    if not isinstance(model, AbstractModel):
        raise ValueError(
            f"`model` must be a wideflow model, got {type(model).__name__}. Use `wideflow.wrap` "
            "first."
        )
    return Taylor(model, model, order)
