r"""The output factor of lazy training and the richness: one knob, two names, for every model
(chizat2019).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._core.errors import check_flag, check_positive
from .._core.precision import double
from .base import AbstractModel, Pullback, adaptive_rate_factors

__all__ = ["Rescaled", "rescaled"]


class Rescaled(AbstractModel):
    r"""$\alpha\,(f_\theta - f_{\theta_0})$ or $\alpha f_\theta$, trained at $1/\alpha^2$ times the
    rate of $f$; see `rescaled`.
    """

    model: AbstractModel
    alpha: Float[Array, ""]
    anchor: AbstractModel | None

    @property
    def trained(self) -> tuple[str, ...]:
        return self.model.trained

    @property
    def input_shape(self):
        return self.model.input_shape

    def __getattr__(self, name: str):
        if name in ("model", "alpha", "anchor") or name.startswith("__"):
            raise AttributeError(name)  # read before it is set
        return getattr(self.model, name)

    def embed(self, inputs) -> Float[Array, "sample embedded"]:
        return self.model.embed(inputs)

    def respond(self, features) -> Float[Array, " sample *output"]:
        outputs = self.model.respond(features)
        return self._factor(outputs) * self._centred(outputs, features)

    def rate_factors(self) -> dict:
        # the tangent kernel of alpha f is alpha^2 times that of f: dividing rates by alpha^2 leaves
        # it
        return {name: f / self.alpha**2 for name, f in self.model.rate_factors().items()}

    def pullback(self, features) -> tuple[Float[Array, " sample *output"], Pullback]:
        outputs, pull = self.model.pullback(features)
        factor = self._factor(outputs)
        return factor * self._centred(outputs, features), lambda c: pull(factor * c)

    def _factor(self, outputs):
        return self.alpha.astype(outputs.dtype)

    def _centred(self, outputs, features):
        if self.anchor is None:
            return outputs
        return outputs - jax.lax.stop_gradient(self.anchor.respond(features))


@adaptive_rate_factors.register
def _(model: Rescaled) -> dict:
    """Updates of fixed size move $\\alpha f$ by $\\alpha$ times as much, not by $\\alpha^2$."""
    inner = adaptive_rate_factors(model.model)
    return {name: factor / model.alpha for name, factor in inner.items()}


@double
def rescaled(
    model,
    *,
    alpha: float | int | None = None,
    richness: float | int | None = None,
    centred: bool = False,
) -> Rescaled:
    r"""`model` with its outputs multiplied by $\alpha$ and its rates divided by $\alpha^2$.

    The tangent kernel stays what it was, so that outputs move at the same speed, while weights have
    to move $\alpha$ times less: $\alpha \to \infty$ is lazy training at any width (chizat2019). The
    richness is $\gamma_0 = 1/\alpha$: 0 is lazy, large is rich (bordelon2022).

    Args:
        alpha, richness: exactly one of the two.
        centred: subtract the outputs of `model` as it is given, so that training starts from zero
            whatever $\alpha$ is.

    >>> import wideflow as wf
    >>> net = wf.Shallow([[2.0]], [1.0])
    >>> float(wf.rescaled(net, alpha=3.0)([1.0])), float(wf.rescaled(net, richness=0.5)([1.0]))
    (6.0, 4.0)
    """
    if not isinstance(model, AbstractModel):
        raise ValueError(
            f"`model` must be a wideflow model, got {type(model).__name__}. Use `wideflow.wrap` "
            "first."
        )
    check_flag("centred", centred)
    if (alpha is None) == (richness is None):
        raise ValueError("give exactly one of `alpha` and `richness`, which is 1 / alpha.")
    if richness is not None:
        check_positive("richness", richness, "Its limit 0 is `limits.linearised`.")
        alpha = 1 / richness
    assert alpha is not None  # given itself, or by the richness
    check_positive("alpha", alpha)
    return Rescaled(model, jnp.asarray(float(alpha)), model if centred else None)
