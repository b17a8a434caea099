r"""With fewer samples than features, a shallow network's dynamics close on an $n$-dimensional subspace: run them there, exactly.

With $\Phi^\top = QR$ ($Q$ orthonormal, $D \times n$) the outputs at the training points depend on $V = Q^\top W$ alone and every gradient
lies in the span of $Q$: a flow of $V$ on the features $R^\top$ is the flow of $W = Q V + (I - QQ^\top)W_0$ on $\Phi$.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp

from ...models.shallow import Shallow


def reduced(model, objective):
    """The same problem in the fewest coordinates, and the map of its model back to all of them."""
    features = objective.features
    if not isinstance(model, Shallow) or features.shape[0] >= features.shape[1]:
        return model, objective, lambda moved: moved
    q, r = jnp.linalg.qr(features.T)
    small = eqx.tree_at(lambda m: m.weights, model, q.T @ model.weights)
    fewer = dataclasses.replace(objective, features=r.T)

    def whole(moved):
        weights = model.weights + q @ (moved.weights - small.weights)
        return eqx.tree_at(lambda m: m.weights, model, weights)

    return small, fewer, whole
