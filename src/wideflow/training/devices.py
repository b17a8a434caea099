"""One network over many devices: neurons are exchangeable, so they are what is spread.

Every device holds a share of the neurons; inputs, targets and outputs are on all of them. A step
exchanges the outputs' partial sums alone, `samples * outputs` numbers, however many neurons there
are. The compiler does the rest: placing the arrays is all that is needed, so every dynamics and
every observable works unchanged.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "width"


def as_mesh(devices: int | str | Sequence) -> Mesh:
    """A line of devices: "all", a count, or the devices themselves.

    With `jax.distributed` initialised "all" means those of all processes.
    """
    there = jax.devices()
    if isinstance(devices, str) and devices == "all":
        mesh_devices = there
    elif isinstance(devices, int) and not isinstance(devices, bool):
        if not 1 <= devices <= len(there):
            raise ValueError(
                f"`devices` must be between 1 and {len(there)}, the devices that JAX sees, got "
                f"{devices}. "
                "On a CPU `XLA_FLAGS=--xla_force_host_platform_device_count=N` makes more."
            )
        mesh_devices = there[:devices]
    else:
        mesh_devices = list(devices) if isinstance(devices, Sequence) else []
        if not mesh_devices or not all(isinstance(one, jax.Device) for one in mesh_devices):
            raise ValueError(
                f"`devices` must be 'all', a count or a list of JAX's devices, got {devices!r}. "
                "`jax.devices()` lists them."
            )
    return Mesh(np.array(mesh_devices), (AXIS,))


def spread(model, mesh: Mesh, stacked: bool):
    """The model with each array's neuron axis cut over the mesh, all else on every device."""
    axes = model.neuron_axes
    if not axes:
        raise ValueError(
            f"{type(model).__name__} has no neuron axis to spread; leave `devices` out. "
            "A model declares it as `neuron_axes`."
        )
    names = {name: getattr(model, name) for name in axes}
    placed = {}
    for name, array in names.items():
        # axes are those of one model, negative ones from the end; stacked members stand in front
        axis = axes[name] % (array.ndim - stacked) + stacked
        width = array.shape[axis]
        if width % mesh.size:
            raise ValueError(
                f"the width {width} must be a multiple of the {mesh.size} devices; "
                f"{width - width % mesh.size} and {width + mesh.size - width % mesh.size} are."
            )
        cut = [None] * array.ndim
        cut[axis] = AXIS
        placed[name] = put(array, NamedSharding(mesh, PartitionSpec(*cut)))
    rest = replicate(model, mesh)
    return eqx.tree_at(lambda m: [getattr(m, n) for n in placed], rest, list(placed.values()))


def replicate(tree, mesh: Mesh):
    """Every array of the tree on every device."""
    everywhere = NamedSharding(mesh, PartitionSpec())
    return jax.tree.map(lambda leaf: put(leaf, everywhere) if eqx.is_array(leaf) else leaf, tree)


def put(array, sharding: NamedSharding):
    """An array that every process holds whole, placed; works over processes too."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        data = put(jax.random.key_data(array), NamedSharding(sharding.mesh, PartitionSpec()))
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(array))
    if sharding.is_fully_addressable:
        return jax.device_put(array, sharding)
    whole = np.asarray(array)
    return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])


def gather(tree, mesh: Mesh):
    """Whole arrays in every process, for the host to read."""
    if not mesh.is_multi_process:
        return tree
    everywhere = NamedSharding(mesh, PartitionSpec())
    arrays, static = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.jit(lambda t: t, out_shardings=everywhere)(arrays), static)
