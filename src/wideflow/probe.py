r"""`probe`: is a network lazy? For any differentiable function of (parameters, input), before and
after training.

With $J_0, J_1$ the Jacobians at the two parameters on the given inputs, $\Theta_k = J_k J_k^\top$
(the mean over outputs where there are several): kernel change
$\lVert\Theta_1-\Theta_0\rVert_F/\lVert\Theta_0\rVert_F$, alignment
$\langle\Theta_0,\Theta_1\rangle/(\lVert\Theta_0\rVert_F\lVert\Theta_1\rVert_F)$, the gap between
the network and its linearisation $f_0 + J_0(\theta_1-\theta_0)$ (one forward-mode product), and the
movement of parameters and of features. The tangent kernel is a sum over arrays, so that every layer
has its part of it, with a change of its own.

Jacobians are never whole: rows are worked off in tiles that fit the memory budget, and a tile is
made again when another tile meets it. A network of ten million parameters needs some tens of bytes
a parameter and tile row. Modules of PyTorch have their own reading, in `wideflow.torch`.
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ._core.arrays import real_array, real_values
from ._core.callable_module import make_callable
from ._core.counted import counted
from ._core.errors import check_flag, check_kind
from ._core.foreign import is_torch_module
from ._core.host import on_device
from ._core.memory import budget
from ._core.precision import double
from ._core.trees import parameters, with_parameters
from .figures import FigureSpec, Line, Panel
from .models import deep_gram
from .models.base import AbstractModel
from .models.deep import Deep
from .observables.regime import Regime

__all__ = ["LayerChange", "Probe", "linearisation_gap", "probe"]

COPIES = 4  # of a tile of gradients that the compiled program holds at its peak


class LayerChange(NamedTuple):
    r"""One layer between the two sets of parameters.

    Attributes:
        parameters: how many it has.
        movement: $\lVert w_1-w_0\rVert/\lVert w_0\rVert$ over its arrays.
        kernel_share: of the trace of the kernel before.
        kernel_change: of its own part of the kernel, relative, in Frobenius norm.
    """

    parameters: int
    movement: float
    kernel_share: float
    kernel_change: float


@dataclass(frozen=True)
class Probe:
    """What changed between two sets of parameters, and the verdict. `print` shows it.

    Attributes:
        regime: kernel change and linearisation gap, with `.verdict` (lazy, between, rich) and
            `.index`.
        alignment: cosine between the two kernels: 1 if the kernel only changed its size.
        size_ratio: trace of the kernel after over before.
        spectrum_before, spectrum_after: all eigenvalues of the kernel, ascending.
        gap_before, gap_after: smallest eigenvalues; NaN where below their error bar.
        error_bar: the rounding of the eigenvalues before.
        effective_rank_before, effective_rank_after: squared trace over the sum of squared entries.
        target_alignment_before, target_alignment_after: with the targets, NaN without.
        feature_movement: relative change of the features, NaN without a feature function.
        parameter_movement: relative change of the parameters.
        output_change: root mean square change of the outputs.
        loss_before, loss_after: half mean of squares, NaN without targets.
        parameters, samples: how many there are.
        layers: `LayerChange` of every layer, by the path that its arrays share; an array that
            stands alone is a layer.
    """

    regime: Regime
    alignment: float
    size_ratio: float
    spectrum_before: np.ndarray
    spectrum_after: np.ndarray
    gap_before: float
    gap_after: float
    error_bar: float
    effective_rank_before: float
    effective_rank_after: float
    target_alignment_before: float
    target_alignment_after: float
    feature_movement: float
    parameter_movement: float
    output_change: float
    loss_before: float
    loss_after: float
    parameters: int
    samples: int
    layers: dict[str, LayerChange]

    @property
    def verdict(self) -> str:
        return "untrained" if self.parameter_movement == 0 else self.regime.verdict

    @property
    def index(self) -> float:
        """The laziness index, 1 for lazy."""
        return self.regime.index

    def rows(self) -> tuple[tuple[str, str, str], ...]:
        gap = lambda value: "not resolved" if math.isnan(value) else f"{value:.4g}"
        rows = [
            (
                "verdict",
                self.verdict,
                f"laziness index {self.index:.3f} from {counted(self.samples, 'input')}, "
                f"{counted(self.parameters, 'parameter')}",
            ),
            (
                "kernel change",
                f"{self.regime.kernel_change:.4g}",
                "relative, in Frobenius norm; below 0.1 lazy, above 0.5 rich",
            ),
            (
                "linearisation gap",
                f"{self.regime.linearisation_gap:.4g}",
                "share of the outputs' change that first order misses",
            ),
            (
                "kernel alignment",
                f"{self.alignment:.6g}",
                "cosine of the two kernels; 1 if only its size changed",
            ),
            ("kernel size ratio", f"{self.size_ratio:.4g}", "trace after over before"),
            (
                "kernel gap",
                f"{gap(self.gap_before)} -> {gap(self.gap_after)}",
                f"smallest eigenvalue, error bar {self.error_bar:.1g}",
            ),
            (
                "effective rank",
                f"{self.effective_rank_before:.4g} -> {self.effective_rank_after:.4g}",
                "directions that carry the kernel",
            ),
            (
                "parameter movement",
                f"{self.parameter_movement:.4g}",
                "relative, over all parameters",
            ),
            ("output change", f"{self.output_change:.4g}", "root mean square"),
        ]
        if not math.isnan(self.feature_movement):
            rows.append(
                ("feature movement", f"{self.feature_movement:.4g}", "relative, in Frobenius norm")
            )
        if not math.isnan(self.loss_before):
            rows += [
                (
                    "target alignment",
                    f"{self.target_alignment_before:.4g} -> {self.target_alignment_after:.4g}",
                    "y'Ky / (|K| |y|^2)",
                ),
                (
                    "loss",
                    f"{self.loss_before:.4g} -> {self.loss_after:.4g}",
                    "half mean of squares",
                ),
            ]
        return tuple(rows)

    def layer_rows(self) -> tuple[tuple[str, str, str], ...]:
        """One row per layer: its name, how far it moved, and what became of its part of the
        kernel.
        """
        return tuple(
            (
                name,
                f"moved {layer.movement:.4g}",
                f"{layer.kernel_share:.1%} of the kernel's trace, a part that changed by "
                f"{layer.kernel_change:.4g}",
            )
            for name, layer in self.layers.items()
        )

    def __str__(self) -> str:
        rows = self.rows() + (self.layer_rows() if len(self.layers) > 1 else ())
        widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
        return "\n".join(
            f"{name.ljust(widths[0])}  {value.ljust(widths[1])}  {text}"
            for name, value, text in rows
        )

    def to_dict(self) -> dict:
        plain = {
            name: value
            for name, value in vars(self).items()
            if name not in ("regime", "layers") and not name.startswith("spectrum")
        }
        spectra = {
            "spectrum_before": self.spectrum_before.tolist(),
            "spectrum_after": self.spectrum_after.tolist(),
        }
        return {
            "verdict": self.verdict,
            "index": self.index,
            **self.regime._asdict(),
            **plain,
            **spectra,
            "layers": {name: layer._asdict() for name, layer in self.layers.items()},
        }

    def figure(self) -> FigureSpec:
        """The spectra of the kernel before and after."""
        marks = [
            Line(np.arange(1, self.samples + 1), np.maximum(values[::-1], 1e-300), label)
            for values, label in ((self.spectrum_before, "before"), (self.spectrum_after, "after"))
        ]
        marks.append(
            Line([1, self.samples], [self.error_bar, self.error_bar], "error bar", dash="dotted")
        )
        panel = Panel("tangent kernel", "index", "eigenvalue", marks, "log", "log")
        return FigureSpec(f"Probe: {self.verdict}, index {self.index:.2f}", [panel], columns=1)


@double
def probe(
    apply: Callable,
    params_before: Any,
    params_after: Any,
    inputs,
    targets=None,
    features: Callable | str | None = None,
    *,
    output: int | None = None,
    batched: bool | None = None,
    memory: int | str | None = None,
) -> Probe:
    """Where a network's training lies between lazy and rich.

    Args:
        apply: `apply(params, x)`, the outputs on one input or on a batch; which of the two is found
            out from shapes unless `batched` says it. A Flax module's `module.apply`; for an Equinox
            module `lambda net, x: net(x)` with the modules as parameters. Or a model of wideflow,
            or a `torch.nn.Module`.
        params_before, params_after: trees of the same structure; leaves that are no floating-point
            arrays are fixed and must agree, as are arrays of a wideflow model that it does not
            train. Where one is kept in a finer precision than the other, both are taken in that.
            Of a wideflow model: the two models. Of a `torch.nn.Module`: state dicts, or modules.
        inputs: (sample, ...), the points at which the network is watched; some tens to hundreds.
        targets: outputs' shape; adds losses and the kernel's alignment with them.
        features: `features(params, x)` like `apply`, hidden features whose movement is measured; of
            a `torch.nn.Module` the name of a submodule.
        output: watch the kernel of this output alone; default is the mean over outputs, which costs
            that many times more.
        memory: budget of the Jacobian tiles, bytes or '512M'; default `WIDEFLOW_MEMORY` or 2 GiB.

    Returns:
        A `Probe` with `.verdict`, `.index` and the numbers behind them.

    A model that is linear in its parameters:

    >>> import jax.numpy as jnp
    >>> p = probe(lambda w, x: jnp.vdot(w, x), jnp.ones(2), jnp.zeros(2), jnp.eye(2))
    >>> p.verdict, p.regime.kernel_change
    ('lazy', 0.0)
    """
    if is_torch_module(apply):
        from .torch.probing import probe_module

        return probe_module(
            apply,
            params_before,
            params_after,
            inputs,
            targets,
            features,
            output=output,
            batched=batched,
            memory=memory,
        )
    inputs = _inputs(inputs)
    if batched is not None:
        check_flag("batched", batched)
    budget(memory)  # refused here, before anything is computed
    if isinstance(apply, AbstractModel):
        apply = lambda model, x: model(x)
    network = _Network(apply, params_before, params_after, inputs, batched, "apply")
    before, after = network.before, network.after
    first, second = (np.asarray(network.outputs(p), dtype=float) for p in (before, after))
    outputs_watched = watched_outputs(first, second, output)
    parts = [
        mean_parts([network.kernel_parts(p, k, memory) for k in outputs_watched])
        for p in (before, after)
    ]
    tangent = np.asarray(
        network.along(before, jax.tree.map(lambda a, b: b - a, before, after)), dtype=float
    )
    return judge_change(
        Change(
            parts=parts,
            outputs=(first, second),
            tangent=tangent,
            squares=network.squares(),
            sizes=network.sizes,
            epsilon=network.epsilon,
            feature_movement=network.feature_movement(features),
        ),
        targets,
        output,
    )


def _inputs(inputs):
    """Every array of the inputs, with one row per sample each."""
    arrays = jax.tree.map(lambda leaf: real_array("inputs", leaf), inputs)
    leaves = jax.tree.leaves(arrays)
    if not leaves or any(leaf.ndim == 0 for leaf in leaves):
        raise ValueError(f"`inputs` must hold arrays with one row per sample, got {inputs!r}.")
    return arrays


def watched_outputs(first: np.ndarray, second: np.ndarray, output: int | None) -> range | tuple:
    """The numbers of the outputs whose kernels are watched, once the outputs before and after were
    seen to be finite.
    """
    for name, values in (("params_before", first), ("params_after", second)):
        if not np.all(np.isfinite(values)):
            raise ValueError(f"`{name}` must give finite outputs, but they hold NaN or infinity.")
    count = first.reshape(len(first), -1).shape[1]
    whole = isinstance(output, Integral) and not isinstance(output, bool)
    if output is not None and not (whole and 0 <= output < count):
        raise ValueError(f"`output` must lie in 0..{count - 1}, got {output!r}.")
    return range(count) if output is None else (output,)


def mean_parts(outputs: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The mean over outputs of every array's part of the kernel."""
    return {name: np.mean([parts[name] for parts in outputs], axis=0) for name in outputs[0]}


@dataclass(frozen=True)
class Change:
    """What a library measured between two sets of parameters; every dictionary goes by the arrays'
    names.

    Attributes:
        parts: every array's part of the kernel, before and after.
        outputs: before and after, (sample, ...).
        tangent: the derivative of the outputs before along the parameters' change.
        squares: sum of squares of every array before, and of its change.
        sizes: how many numbers every array has.
        epsilon: rounding of the arithmetic that was used.
    """

    parts: list[dict[str, np.ndarray]]
    outputs: tuple[np.ndarray, np.ndarray]
    tangent: np.ndarray
    squares: dict[str, tuple[float, float]]
    sizes: dict[str, int]
    epsilon: float
    feature_movement: float


def judge_change(change: Change, targets, output: int | None) -> Probe:
    first, second = change.outputs
    kernels = [_total(parts.values()) for parts in change.parts]
    spectra = [np.linalg.eigvalsh(k) for k in kernels]
    sizes = [np.linalg.norm(k) for k in kernels]
    bars = [len(first) * change.epsilon * float(np.trace(k)) for k in kernels]
    gaps = [float(s[0]) if s[0] > b else math.nan for s, b in zip(spectra, bars)]
    moved = second - first
    size = float(np.linalg.norm(moved))
    gap = float(np.linalg.norm(moved - change.tangent)) / size if size > 0 else 0.0
    if not sizes[0] > 0:
        raise ValueError(
            "`apply` does not depend on `params_before` at these inputs: its tangent kernel is "
            "zero."
        )
    alignment = (
        float(np.sum(kernels[0] * kernels[1]) / (sizes[0] * sizes[1])) if sizes[1] > 0 else 0.0
    )
    ranks = [
        float(float(np.trace(k)) ** 2 / s**2) if s > 0 else 0.0 for k, s in zip(kernels, sizes)
    ]
    losses, alignments = _fit(kernels, sizes, first, second, targets, output)
    return Probe(
        regime=Regime(relative_change(kernels[0], kernels[1]), gap),
        alignment=alignment,
        size_ratio=float(np.trace(kernels[1]) / np.trace(kernels[0])),
        spectrum_before=spectra[0],
        spectrum_after=spectra[1],
        gap_before=gaps[0],
        gap_after=gaps[1],
        error_bar=bars[0],
        effective_rank_before=ranks[0],
        effective_rank_after=ranks[1],
        target_alignment_before=alignments[0],
        target_alignment_after=alignments[1],
        feature_movement=change.feature_movement,
        parameter_movement=relative_movement(change.squares.values()),
        output_change=float(np.sqrt(np.mean(moved**2))),
        loss_before=losses[0],
        loss_after=losses[1],
        parameters=sum(change.sizes.values()),
        samples=len(first),
        layers=_layer_changes(change, float(np.trace(kernels[0]))),
    )


def _total(parts: Iterable[np.ndarray]) -> np.ndarray:
    """Of at least one kernel."""
    return functools.reduce(np.add, parts)


def _fit(kernels, sizes, first, second, targets, output) -> tuple[tuple, tuple]:
    """Losses and the kernels' alignment with the targets, before and after; NaN without targets."""
    if targets is None:
        return (math.nan, math.nan), (math.nan, math.nan)
    y = np.asarray(real_values("targets", targets), np.float64)
    if y.shape != first.shape:
        raise ValueError(
            f"`targets` must have the shape {first.shape} of the outputs, got {y.shape}."
        )
    losses = tuple(0.5 * float(np.sum((f - y) ** 2)) / len(y) for f in (first, second))
    flat = y.reshape(len(y), -1)
    flat = flat if output is None else flat[:, [output]]
    alignments = tuple(
        float(np.sum(flat * (k @ flat)) / (s * np.sum(flat**2))) if s > 0 else 0.0
        for k, s in zip(kernels, sizes)
    )
    return losses, alignments


def relative_change(before: np.ndarray, after: np.ndarray) -> float:
    """In Frobenius norm; 0 where both are zero."""
    size, moved = float(np.linalg.norm(before)), float(np.linalg.norm(after - before))
    return moved / size if size > 0 else math.inf if moved > 0 else 0.0


def relative_movement(squares: Iterable[tuple[float, float]]) -> float:
    """From sums of squares of the start and of the change, one pair an array."""
    start, moved = (math.fsum(column) for column in zip(*squares))
    return math.sqrt(moved / start) if start > 0 else math.inf if moved > 0 else 0.0


def _layer_changes(change: Change, trace: float) -> dict[str, LayerChange]:
    layers: dict[str, list[str]] = {}
    for name in change.sizes:
        parent, _, last = name.rpartition(".")
        # an array in a list is a layer of its own
        layers.setdefault(name if last.isdigit() or not parent else parent, []).append(name)
    changes = {}
    for layer, names in layers.items():
        before, after = (_total(parts[name] for name in names) for parts in change.parts)
        changes[layer] = LayerChange(
            sum(change.sizes[name] for name in names),
            relative_movement(change.squares[name] for name in names),
            float(np.trace(before)) / trace,
            relative_change(before, after),
        )
    return changes


class _Network:
    """The function on a batch, its gradient rows, and its products, with the fixed leaves of the
    parameters put aside.
    """

    def __init__(self, apply, before, after, inputs, batched, name):
        if jax.tree.structure(before) != jax.tree.structure(after):
            raise ValueError(
                "`params_before` and `params_after` must be trees of one structure; they differ."
            )
        for which, tree in (("params_before", before), ("params_after", after)):
            for leaf in filter(eqx.is_array_like, jax.tree.leaves(tree)):
                if isinstance(leaf, np.ndarray | jax.Array | complex):
                    real_values(which, leaf, finite=False, empty=True)
        before, after = jax.tree.map(_array, before), jax.tree.map(_array, after)
        self.before, self.static = eqx.partition(before, _trained(before))
        self.after, fixed = eqx.partition(after, _trained(after))
        for a, b in zip(jax.tree.leaves(self.static), jax.tree.leaves(fixed)):
            if eqx.is_inexact_array(a) and not jnp.array_equal(a, b, equal_nan=True):
                raise ValueError(
                    "`params_before` and `params_after` differ in an array that their model does "
                    f"not train, of shape {a.shape}; only those in `trained` may change."
                )
            if isinstance(a, int | float) and a != b:
                raise ValueError(
                    f"`params_before` and `params_after` differ in a fixed number, {a} and {b}; "
                    "only arrays may change."
                )
        if jax.tree.structure(self.before) != jax.tree.structure(self.after):
            raise ValueError(
                "`params_after` must hold arrays where `params_before` does, but the two differ."
            )
        pairs = list(zip(jax.tree.leaves(self.before), jax.tree.leaves(self.after), strict=True))
        if not pairs:
            raise ValueError(
                "`params_before` holds no floating-point array: there is nothing to differentiate."
            )
        for a, b in pairs:
            if a.shape != b.shape:
                raise ValueError(
                    f"`params_after` must have the shapes of `params_before`, got {b.shape} for "
                    f"{a.shape}."
                )
        finer = lambda a, b: a.astype(np.promote_types(a.dtype, b.dtype))
        self.before, self.after = (
            jax.tree.map(finer, self.before, self.after),
            jax.tree.map(finer, self.after, self.before),
        )
        pairs = list(zip(jax.tree.leaves(self.before), jax.tree.leaves(self.after), strict=True))
        self.inputs, self.apply = inputs, apply
        self.samples = jax.tree.leaves(inputs)[0].shape[0]
        self.batched = (
            _is_batched(self.call, self.before, inputs, name) if batched is None else batched
        )
        paths = (path for path, _ in jax.tree.leaves_with_path(self.before))
        names = [jax.tree_util.keystr(path, simple=True, separator=".") for path in paths]
        self.names = [name or "parameters" for name in names]
        self.sizes = {name: int(a.size) for name, (a, _) in zip(self.names, pairs, strict=True)}
        self.epsilon = float(max(jnp.finfo(a.dtype).eps for a, _ in pairs))
        self.itemsize = max(a.dtype.itemsize for a, _ in pairs)

    def call(self, params, x):
        return self.apply(eqx.combine(params, self.static), x)

    def on(self, params, inputs):
        if self.batched:
            return self.call(params, inputs)
        return jax.vmap(lambda x: self.call(params, x))(inputs)

    def outputs(self, params):
        return eqx.filter_jit(self.on)(params, self.inputs)

    def along(self, params, direction):
        """The directional derivative of all outputs."""
        return eqx.filter_jit(self._push)(params, direction)

    # Compiled functions are methods and no closures: the second call, at other parameters, finds
    # the program of the first.

    def _push(self, params, direction):
        return jax.jvp(lambda p: self.on(p, self.inputs), (params,), (direction,))[1]

    def _gradients(self, params, block, output):
        """The gradient of one output at every sample of `block`."""

        def scalar(p, x):
            one = jax.tree.map(lambda leaf: leaf[None], x)
            value = self.on(p, one)[0]
            return value if value.ndim == 0 else value.reshape(-1)[output]

        return jax.vmap(lambda x: jax.grad(scalar)(params, x))(block)

    def _cotangent_products(self, params):
        """Outputs and a random cotangent's product with the Jacobian, of `apply` and of the `Deep`
        itself; None where shapes differ.
        """
        own = lambda p: (lambda net: net.respond(net.embed(self.inputs)))(
            eqx.combine(p, self.static)
        )
        own_outputs, own_pullback = jax.vjp(lambda p: self.on(p, self.inputs), params)
        outputs, pullback = jax.vjp(own, params)
        if own_outputs.shape != outputs.shape or own_outputs.dtype != outputs.dtype:
            return None
        v = jax.random.normal(jax.random.key(0), outputs.shape, outputs.dtype)
        return (own_outputs, own_pullback(v)), (outputs, pullback(v))

    def kernel_parts(self, params, output: int, memory) -> dict[str, np.ndarray]:
        """Every array's part of the tangent Gram matrix of one output: structured for a `Deep`,
        else from tiles of gradient rows.
        """
        model = self._deep(params)
        if model is not None:
            features, rates = model.embed(self.inputs), model.rate_factors()
            parts = deep_gram.gram_parts(model, features, output=output, memory=memory)
            parts = {name: np.asarray(part / rates[name], float) for name, part in parts.items()}
            return {name: parts[_deep_name(name)] for name in self.names}
        row = COPIES * self.itemsize * sum(self.sizes.values())
        rows = max(1, min(self.samples, int(budget(memory) // (2 * row))))
        starts = range(0, self.samples, rows)
        number = on_device(np.asarray(output))  # as an array: all outputs share one program
        gradients = lambda start: eqx.filter_jit(self._gradients)(
            params, self._block(start, rows), number
        )
        kernels = np.zeros((len(self.names), self.samples, self.samples))
        for i in starts:
            left = gradients(i)
            for j in (k for k in starts if k >= i):
                right = left if j == i else gradients(j)
                blocks = np.asarray(_products(left, right), dtype=float)
                kernels[:, i : i + rows, j : j + rows] = blocks
                kernels[:, j : j + rows, i : i + rows] = blocks.transpose(0, 2, 1)
        kernels = (kernels + kernels.transpose(0, 2, 1)) / 2
        return dict(zip(self.names, kernels, strict=True))

    def _deep(self, params) -> Deep | None:
        """The module itself, where it is a `Deep` with all arrays trained and `apply` gives its
        outputs.

        `apply` may be any function of the module. It has the module's Jacobian at these inputs if
        both give the same outputs and the same product of a random cotangent with the Jacobian: two
        different ones agree with probability 0.
        """
        model = eqx.combine(params, self.static)
        if not isinstance(model, Deep) or not eqx.is_array(self.inputs):
            return None
        whole = all(place.layer.trained for place in model.places)
        plain = all(node is None for node in model.nodes)
        flat = (math.prod(model.input_shape),)
        if not (whole and plain and self.inputs.shape[1:] in (flat, model.input_shape)):
            return None
        pair = eqx.filter_jit(self._cotangent_products)(params)
        if pair is None:
            return None
        size = lambda tree: math.sqrt(
            sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(tree))
        )
        far = size(jax.tree.map(lambda a, b: a - b, *pair))
        return model if far <= math.sqrt(self.epsilon) * size(pair[1]) else None

    def _block(self, start: int, rows: int):
        return jax.tree.map(lambda leaf: leaf[start : start + rows], self.inputs)

    def squares(self) -> dict[str, tuple[float, float]]:
        """Sum of squares of every array before, and of its change."""
        square = lambda leaf: float(jnp.sum(jnp.square(leaf.astype(float))))
        pairs = zip(jax.tree.leaves(self.before), jax.tree.leaves(self.after), strict=True)
        return {name: (square(a), square(b - a)) for name, (a, b) in zip(self.names, pairs)}

    def feature_movement(self, features) -> float:
        if features is None:
            return math.nan
        hidden = lambda params, x: features(eqx.combine(params, self.static), x)
        batched = _is_batched(hidden, self.before, self.inputs, "features")
        run = eqx.filter_jit(
            lambda p: (
                hidden(p, self.inputs) if batched else jax.vmap(lambda x: hidden(p, x))(self.inputs)
            )
        )
        before, after = (np.asarray(run(p), dtype=float) for p in (self.before, self.after))
        size = float(np.linalg.norm(before))
        return float(np.linalg.norm(after - before)) / size if size > 0 else math.inf


def _deep_name(path: str) -> str:
    """What `Deep` calls the array at a path in its tree: `weights.0` is `weight_1`."""
    kind, _, number = path.partition(".")
    return f"{'weight' if kind == 'weights' else 'bias'}_{int(number) + 1}"


def _trained(tree):
    """True at every array that training may move: floating-point ones, and of a wideflow model
    those in `trained` alone, since the tangent kernel knows no others.
    """

    def of(node):
        if not isinstance(node, AbstractModel):
            return eqx.is_inexact_array(node)
        moving = {id(array) for array in parameters(node).values()}
        return jax.tree.map(lambda leaf: eqx.is_inexact_array(leaf) and id(leaf) in moving, node)

    return jax.tree.map(of, tree, is_leaf=lambda node: isinstance(node, AbstractModel))


def _array(leaf):
    """NumPy arrays as JAX's; Python numbers stay fixed settings, as in Equinox."""
    return jnp.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic) else leaf


@eqx.filter_jit
def _products(left, right):
    pairs = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    flat = ((a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1)) for a, b in pairs)
    return jnp.stack([jnp.matmul(a, b.T, precision=jax.lax.Precision.HIGHEST) for a, b in flat])


def _is_batched(call, params, inputs, name: str) -> bool:
    """Whether the function takes batches, from the shapes it gives to one input, a batch of one and
    the whole batch.
    """
    one = jax.tree.map(lambda leaf: leaf[0], inputs)
    few = jax.tree.map(lambda leaf: leaf[:1], inputs)
    count = jax.tree.leaves(inputs)[0].shape[0]
    single, short, whole = (_shape(call, params, x) for x in (one, few, inputs))
    as_batch = (
        whole is not None
        and short is not None
        and whole[:1] == (count,)
        and short == (1, *whole[1:])
    )
    if whole is None or not as_batch:
        if single is None:
            raise ValueError(
                f"`{name}` fails on one input and gives no leading sample axis on the batch "
                f"`inputs`; call it as `{name}(params, x)`."
            )
        return False
    if single is None or single != whole[1:]:
        return True
    pair = jax.tree.map(lambda leaf: leaf[:2], inputs)
    together, apart = call(params, pair), jax.vmap(lambda x: call(params, x))(pair)
    if bool(jnp.allclose(together, apart, rtol=1e-3, atol=1e-6)):
        return True
    raise ValueError(
        f"`{name}` gives different values on a batch and on its single inputs; say which of them "
        "is right with `batched=True` or `False`."
    )


def _shape(call, params, x):
    try:
        result = eqx.filter_eval_shape(call, params, x)
    except Exception:  # whatever the user's function raises: it does not take such an input
        return None
    return result.shape if hasattr(result, "shape") else None


@double
def linearisation_gap(before, after, inputs) -> float:
    r"""$\lVert f_1-f_0-J_0(\theta_1-\theta_0)\rVert/\lVert f_1-f_0\rVert$ between two states of a
    wideflow model; 0 where the parameters moved by no more than their rounding.

    Args:
        before, after: the two states, with parameters $\theta_0$ and $\theta_1$.
        inputs: where the outputs $f$ are compared, shape (sample, feature).
    """
    for name, model in (("before", before), ("after", after)):
        check_kind(name, model, AbstractModel, "a wideflow model")
    features = before.embed(real_array("inputs", inputs))
    theta, end = parameters(before), parameters(after)
    if all(
        float(jnp.linalg.norm(end[k] - theta[k]))
        <= 10 * float(jnp.finfo(theta[k].dtype).eps) * float(jnp.linalg.norm(theta[k]))
        for k in theta
    ):
        return 0.0
    first, tangent = jax.jvp(
        lambda p: with_parameters(before, p).respond(features),
        (theta,),
        ({k: end[k] - theta[k] for k in theta},),
    )
    moved = with_parameters(before, end).respond(features) - first
    size = float(jnp.linalg.norm(moved))
    return float(jnp.linalg.norm(moved - tangent)) / size if size > 0 else 0.0


def __dir__() -> list[str]:
    return __all__  # completion shows what is this module's own


make_callable(__name__, probe)  # `wf.probe(...)`, and `import wideflow.probe` is a module
