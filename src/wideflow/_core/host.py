"""Arrays in the host's memory are read and built by NumPy, without a program that JAX would compile
for each shape.

On a CPU a JAX array lies in that memory, and NumPy sees it without a copy. An operation of JAX
outside `jit` is a program of its own for every shape: some ten milliseconds each, which a run of
many small pieces pays again and again. What only moves numbers, or looks whether they are finite,
needs none. Arrays on accelerators, arrays spread over processes, keys and traced values stay with
JAX.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def on_host(array) -> bool:
    """Whether NumPy can read the numbers of `array` where they lie."""
    if isinstance(array, Tracer):
        return False
    if not isinstance(array, jax.Array):
        return isinstance(array, np.ndarray | np.generic)
    if jnp.issubdtype(array.dtype, jax.dtypes.extended) or not array.is_fully_addressable:
        return False
    return all(device.platform == "cpu" for device in array.devices())


def all_finite(array) -> bool:
    """Whether no entry is NaN or infinite; on an accelerator judged there, so that one flag comes
    back.
    """
    if on_host(array):
        return bool(np.isfinite(np.asarray(array)).all())
    return bool(jnp.all(jnp.isfinite(array)))


def on_device(values) -> jax.Array:
    """An array of JAX with these numbers; a NumPy array may be written to afterwards, for its
    numbers are copied.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufc":
        return jax.device_put(np.array(values))
    return jnp.asarray(values)


def scale(factor: float, array) -> jax.Array:
    """`factor * array`; where an array of JAX lies with NumPy, by NumPy: the same numbers."""
    if isinstance(array, jax.Array) and _on_first_cpu(array):
        return jax.device_put(factor * np.asarray(array))
    return factor * array


def transpose(array: jax.Array) -> jax.Array:
    """`array.T`."""
    if _on_first_cpu(array):
        return jax.device_put(np.array(np.asarray(array).T, order="C"))
    return array.T


def stack(arrays: Sequence[jax.Array]) -> jax.Array:
    """`jnp.stack(arrays)`: a new first axis."""
    if all(map(_on_first_cpu, arrays)):
        return jax.device_put(np.stack([np.asarray(array) for array in arrays]))
    return jnp.stack(arrays)


def unstack(array: jax.Array) -> list[jax.Array]:
    """The entries of the first axis, each an array of its own."""
    if _on_first_cpu(array):
        return [jax.device_put(np.array(entry)) for entry in np.asarray(array)]
    return [array[i] for i in range(array.shape[0])]


def _on_first_cpu(array) -> bool:
    """Whether a copy by NumPy comes to lie where `array` does: not for one that is spread, or held
    on a chosen device.
    """
    return on_host(array) and (
        not isinstance(array, jax.Array) or array.devices() == {jax.local_devices()[0]}
    )
