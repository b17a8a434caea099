r"""What training has learnt by a time, as a function of the kernel:
$T = \Theta^{-1}(I - e^{-\Theta t})$, or its form for descent.

On the spectrum where there is one (`learnt_part`); on vectors, from products with $\Theta$ alone,
by Lanczos' method (`apply_learnt`): from $b$ it builds an orthonormal basis $Q$ of the Krylov space
and the tridiagonal $H = Q^\top\Theta Q$, and $T b \approx \lVert b\rVert\,Q\,T(H)\,e_1$. Directions
that $T$ has nearly learnt and those that it has not touched both look flat to it, so the steps grow
like $\sqrt{\lambda_{\max}t}$ or less (hochbruck1997).
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

CHECKED_EVERY = 8  # steps: the small eigenproblems of a check cost less than one product
# of the largest coupling: below it the Krylov space is closed and what is left is rounding
CLOSED = 1e-13


def learnt_part(values, times, rate=None, xp=jnp):
    r"""$(1 - e^{-\lambda t})/\lambda$ for each time and eigenvalue (or its form for descent); $t$
    at $\lambda = 0$, and 0 there at $t = \infty$.

    A direction of zero eigenvalue never moves: at infinite time it is left out, as in the
    pseudo-inverse. `xp` is `jax.numpy`, or `numpy` where many small spectra would each be compiled.
    """
    moving = values > 0
    safe = xp.where(moving, values, 1.0)
    if rate is None:
        gone = -xp.expm1(-xp.where(moving, safe * times[:, None], 0.0))
    else:
        steps, x = xp.round(times[:, None] / rate), xp.where(moving, rate * safe, 0.0)
        ended = xp.isinf(steps)
        steps = xp.where(ended, 1.0, steps)
        # 1 - (1 - x)^k = -expm1(k log1p(-x)) keeps the digits of small x that 1 - x rounds away;
        # from x = 1 on the power is taken as it stands, for 1 - x is not positive
        slow = -xp.expm1(steps * xp.log1p(-xp.where(x < 1, x, 0.0)))
        gone = xp.where(x < 1, slow, 1 - (1 - x) ** steps)
        gone = xp.where(ended, 1.0, gone)
    still = xp.where(xp.isfinite(times), times, 0.0)[:, None]
    return xp.where(moving, gone / safe, still)


def apply_learnt(
    product: Callable,
    vectors: np.ndarray,
    times: np.ndarray,
    *,
    rate: float | int | None = None,
    tolerance: float,
    max_steps: int,
    progress: Callable | None = None,
) -> np.ndarray:
    r"""$T_t B$ for all times, with one product $\Theta V$ a step for all columns of $B$ together.

    Args:
        product: $V \mapsto (\Theta + \lambda I)V$ for (sample, column).
        vectors: $B$, (sample, column).
        times: finite times.
        rate: of descent; the flow if None.
        tolerance: change of $T B$ over the last steps, relative to its size, at every time and
            column.
        max_steps: of Lanczos' method.
        progress: called with the steps done and all of them.

    Returns:
        (time, sample, column).
    """
    size = np.linalg.norm(vectors, axis=0)
    safe = np.where(size > 0, size, 1.0)
    vector, steps = vectors / safe, min(max_steps, len(vectors))
    basis = np.zeros((steps, *vectors.shape))
    inner = np.zeros((vectors.shape[1], steps, steps))  # H of every column
    before = np.zeros((len(times), vectors.shape[1], 0))
    change = np.inf
    for step in range(steps):
        basis[step] = vector
        image = product(vector)
        if progress is not None:
            progress(step + 1, steps)
        inner[:, step, step] = (vector * image).sum(0)
        for _ in range(2):  # twice, so that no direction comes back as rounding
            overlaps = np.einsum("ksc,sc->kc", basis[: step + 1], image)
            image = image - np.einsum("ksc,kc->sc", basis[: step + 1], overlaps)
        last = step + 1 == steps
        if last or (step + 1) % CHECKED_EVERY == 0:
            weights = _learnt_weights(inner[:, : step + 1, : step + 1], times, rate)
            difference = weights.copy()
            # weights of the new directions count as change in full; Q is orthonormal, so this is |T
            # b| itself
            difference[..., : before.shape[-1]] -= before
            norms = np.linalg.norm(weights, axis=-1)
            change = float(
                np.max(np.linalg.norm(difference, axis=-1) / np.where(norms > 0, norms, 1.0))
            )
            before = weights
            # a basis of the whole space leaves nothing out
            if change <= tolerance or step + 1 == len(vectors):
                break
        if last:
            raise ValueError(
                f"the prediction at time {float(np.max(times)):g} still changes by {change:.2g} "
                f"after {steps} products with the stored kernel. Raise `memory`, so "
                "that the kernel fits, or ask for infinite time."
            )
        coupling = np.linalg.norm(image, axis=0)
        open_ = coupling > CLOSED * np.max(np.abs(inner), axis=(1, 2))
        vector = np.where(open_, image / np.where(open_, coupling, 1.0), 0.0)
        # columns close at different steps: a closed one goes on with zeros, which add nothing
        inner[:, step, step + 1] = inner[:, step + 1, step] = np.where(open_, coupling, 0.0)
    used = before.shape[-1]
    return np.einsum("ksc,tck->tsc", basis[:used], before * size[:, None])


def _learnt_weights(inner: np.ndarray, times, rate) -> np.ndarray:
    r"""$T(H)\,e_1$ for all times and columns, (time, column, step)."""
    values, vectors = np.linalg.eigh(inner)
    if rate is not None and rate * values.max() >= 2:
        raise ValueError(
            f"`rate` must be below 2/{values.max():.3g} = {2 / values.max():.3g}, or descent "
            f"diverges, got {rate}."
        )
    # Ritz values lie within the spectrum up to rounding: those below 0 are rounding
    spectra = [learnt_part(np.maximum(v, 0.0), times, rate, np) for v in values]
    return np.einsum("cke,cte,ce->tck", vectors, np.stack(spectra), vectors[:, 0])
