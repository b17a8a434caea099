"""Architectures in a neutral form, and what neural-tangents 0.6.5 says of their kernels.

The values in `neural_tangents_values.json` were written by this file, in an environment of its own
(Python 3.11, neural-tangents==0.6.5, jax==0.4.25, jaxlib==0.4.25, numpy<2, scipy<1.13,
ml_dtypes<0.5; the benchmarks' `environments.py` builds it):

    benchmarks/envs/neural-tangents/bin/python tests/limits/infinite_width/neural_tangents_values.py

A layer is a tuple of its kind and its settings; `serial` and `residual` nest. The tests read the
same tuples as wideflow's layers. Inputs are drawn from NumPy's generator, so both sides see the
same numbers.
"""

import json
import pathlib

import numpy as np

PLACE = pathlib.Path(__file__).with_suffix(".json")


def dense(width=8, w=1.3, b=0.4):
    return ("dense", dict(width=width, w=w, b=b))


def conv(channels=6, window=(3, 3), strides=None, padding="SAME", w=1.2, b=0.3):
    return (
        "conv",
        dict(channels=channels, window=window, strides=strides, padding=padding, w=w, b=b),
    )


def act(name, *parameters):
    return ("act", dict(name=name, parameters=parameters))


def pool(kind, window=(2, 2), strides=(2, 2), padding="VALID"):
    return ("pool", dict(kind=kind, window=window, strides=strides, padding=padding))


def residual(body, shortcut=None):
    return ("residual", dict(body=body, shortcut=shortcut))


def attention(scaling="linear", mechanism="softmax", b=None, **stds):
    return ("attention", dict(scaling=scaling, mechanism=mechanism, b=b, **stds))


GAP, FLAT, NORM = ("global", {}), ("flatten", {}), ("norm", {})
RELU = act("relu")
VECTOR, IMAGE, ODD, SERIES = (5,), (6, 5, 2), (7, 7, 3), (9, 2)


def two(activation):
    return [dense(), activation, dense(w=0.9, b=None), activation, dense(1, 1.1, 0.2)]


SPECS = {  # name -> (shape of an input, parametrisation, layers)
    **{
        f"dense {name}": (VECTOR, "ntk", two(act(name)))
        for name in (
            "relu",
            "abs",
            "erf",
            "gelu",
            "sin",
            "cos",
            "gaussian",
            "exp",
            "sign",
            "linear",
        )
    },
    "dense leaky relu": (VECTOR, "ntk", two(act("leaky_relu", 0.2))),
    "dense two slopes": (VECTOR, "ntk", two(act("two_slopes", -0.5, 1.5))),
    "dense wave": (VECTOR, "ntk", two(act("wave", 1.3, 0.7, 0.4))),
    "dense scaled erf": (VECTOR, "ntk", two(act("erf", 0.6))),
    "dense broad gaussian": (VECTOR, "ntk", two(act("gaussian", 0.3))),
    **{f"dense monomial {k}": (VECTOR, "ntk", two(act("monomial", k))) for k in (2, 3, 5)},
    "dense polynomial": (VECTOR, "ntk", two(act("polynomial", 0.5, -1.0, 0.3, 0.2))),
    **{
        f"dense rectified power {k}": (
            VECTOR,
            "ntk",
            [dense(), act("rectified_power", k), dense(1)],
        )
        for k in (0, 1, 2, 3)
    },
    # the other library's Hermite layer holds for inputs of unit variance alone
    "dense hermite 3": (VECTOR, "ntk", [dense(8, 1.0, None), NORM, act("hermite", 3), dense(1)]),
    "linear model": (VECTOR, "ntk", [dense(1)]),
    "deep relu": (VECTOR, "ntk", [dense(8, 2**0.5, 0.1), RELU] * 8 + [dense(1)]),
    "deep erf without bias": (VECTOR, "ntk", [dense(8, 1.5, None), act("erf")] * 5 + [dense(1)]),
    "standard": (VECTOR, "standard", [dense(11), RELU, dense(7, 1.4, None), act("erf"), dense(2)]),
    "standard deep": (VECTOR, "standard", [dense(16, 2**0.5, 0.1), RELU] * 4 + [dense(1)]),
    "layer norm": (VECTOR, "ntk", [dense(), NORM, RELU, dense(), NORM, act("gelu"), dense(1)]),
    "residual": (
        VECTOR,
        "ntk",
        [
            dense(),
            residual([RELU, dense()]),
            residual([act("erf"), dense(), RELU, dense()]),
            RELU,
            dense(1),
        ],
    ),
    "residual with shortcut": (
        VECTOR,
        "standard",
        [dense(), residual([RELU, dense(9)], [dense(9, 0.7, None)]), RELU, dense(1)],
    ),
    "image flattened": (IMAGE, "ntk", [FLAT, dense(), RELU, dense(1)]),
    "image dense on channels": (IMAGE, "ntk", [dense(), RELU, dense(), RELU, FLAT, dense(1)]),
    "conv same": (IMAGE, "ntk", [conv(), RELU, conv(), RELU, FLAT, dense(1)]),
    "conv valid": (
        IMAGE,
        "ntk",
        [
            conv(padding="VALID"),
            act("erf"),
            conv(window=(2, 2), padding="VALID"),
            RELU,
            FLAT,
            dense(1),
        ],
    ),
    "conv circular": (
        IMAGE,
        "ntk",
        [conv(padding="CIRCULAR"), RELU, conv(padding="CIRCULAR"), RELU, FLAT, dense(1)],
    ),
    "conv strides": (
        ODD,
        "ntk",
        [conv(strides=(2, 2)), RELU, conv(strides=(1, 2), padding="SAME"), RELU, FLAT, dense(1)],
    ),
    "conv strides circular": (
        ODD,
        "ntk",
        [conv(strides=(2, 2), padding="CIRCULAR"), RELU, GAP, dense(1)],
    ),
    "conv even window": (
        IMAGE,
        "ntk",
        [conv(window=(2, 4)), RELU, conv(window=(4, 1)), RELU, GAP, dense(1)],
    ),
    "conv global pool": (IMAGE, "ntk", [conv(), RELU, conv(), RELU, GAP, dense(1)]),
    "conv global pool circular": (
        ODD,
        "ntk",
        [
            conv(padding="CIRCULAR"),
            act("gelu"),
            conv(padding="VALID", strides=(2, 1)),
            RELU,
            GAP,
            dense(1),
        ],
    ),
    "conv average pool": (
        IMAGE,
        "ntk",
        [conv(), RELU, pool("average"), conv(), RELU, FLAT, dense(1)],
    ),
    "conv average pool same": (
        ODD,
        "ntk",
        [conv(), RELU, pool("average", (3, 3), (2, 2), "SAME"), conv(), RELU, GAP, dense(1)],
    ),
    "conv average pool circular": (
        ODD,
        "ntk",
        [conv(), RELU, pool("average", (3, 2), (1, 2), "CIRCULAR"), conv(), RELU, FLAT, dense(1)],
    ),
    "conv sum pool": (
        IMAGE,
        "ntk",
        [conv(), act("abs"), pool("sum", (2, 2), (1, 1)), conv(), RELU, GAP, dense(1)],
    ),
    "conv standard": (IMAGE, "standard", [conv(), RELU, conv(window=(2, 2)), RELU, GAP, dense(1)]),
    "conv standard flattened": (IMAGE, "standard", [conv(4), RELU, conv(7), RELU, FLAT, dense(1)]),
    "conv layer norm": (IMAGE, "ntk", [conv(), NORM, RELU, conv(), NORM, RELU, GAP, dense(1)]),
    "conv residual": (
        IMAGE,
        "ntk",
        [conv(), residual([RELU, conv(), RELU, conv()]), RELU, GAP, dense(1)],
    ),
    "conv residual strided": (
        ODD,
        "ntk",
        [
            conv(),
            residual(
                [RELU, conv(8, strides=(2, 2)), RELU, conv(8)],
                [conv(8, (1, 1), (2, 2), "SAME", 1.0, None)],
            ),
            NORM,
            RELU,
            FLAT,
            dense(1),
        ],
    ),
    "series": (
        SERIES,
        "ntk",
        [conv(6, (3,), (2,)), RELU, conv(6, (3,), None, "CIRCULAR"), RELU, GAP, dense(1)],
    ),
    "attention softmax": (SERIES, "ntk", [conv(6, (3,)), RELU, attention(), RELU, FLAT, dense(1)]),
    "attention on inputs": (
        SERIES,
        "ntk",
        [attention(b=0.3, qk=0.7, value=1.2, out=0.8), RELU, GAP, dense(1)],
    ),
    "attention on images": (
        IMAGE,
        "ntk",
        [conv(), RELU, attention(b=0.2, qk=1.3), RELU, FLAT, dense(1)],
    ),
    "attention identity": (
        SERIES,
        "ntk",
        [dense(), attention("linear", "identity", 0.3, qk=0.6), RELU, GAP, dense(1)],
    ),
    "attention relu": (
        SERIES,
        "ntk",
        [dense(), act("erf"), attention("linear", "relu", qk=0.6), RELU, FLAT, dense(1)],
    ),
    "attention abs": (
        IMAGE,
        "ntk",
        [conv(), act("erf"), attention("linear", "abs", 0.1, qk=0.3, value=0.9), GAP, dense(1)],
    ),
    "attention sqrt": (
        SERIES,
        "ntk",
        [
            conv(6, (3,)),
            RELU,
            attention("sqrt", "identity", 0.4, qk=0.7, value=1.1, out=0.9),
            RELU,
            GAP,
            dense(1),
        ],
    ),
    "attention sqrt on images": (
        IMAGE,
        "ntk",
        [attention("sqrt", "identity", None, qk=0.5), RELU, FLAT, dense(1)],
    ),
    "attention block": (
        SERIES,
        "ntk",
        [
            dense(),
            residual([attention(b=0.2)]),
            NORM,
            residual([dense(), RELU, dense()]),
            GAP,
            dense(1),
        ],
    ),
    "positions at the end": (IMAGE, "ntk", [conv(), RELU, conv(3)]),
}


def inputs(name: str, count: int, part: int) -> np.ndarray:
    shape = SPECS[name][0]
    seed = [sum(map(ord, name)), part]
    return np.random.default_rng(seed).standard_normal((count, *shape))


def stax_layer(spec, parametrisation):
    from neural_tangents import stax

    kind, s = spec
    build = lambda layers: stax.serial(*(stax_layer(x, parametrisation) for x in layers))
    if kind == "dense":
        return stax.Dense(s["width"], s["w"], s["b"], parameterization=parametrisation)
    if kind == "conv":
        return stax.Conv(
            s["channels"],
            s["window"],
            s["strides"],
            s["padding"],
            s["w"],
            s["b"],
            parameterization=parametrisation,
        )
    if kind == "act":
        return stax_activation(stax, s["name"], s["parameters"])
    if kind == "pool":
        if s["kind"] == "average":
            return stax.AvgPool(s["window"], s["strides"], s["padding"], normalize_edges=True)
        return stax.SumPool(s["window"], s["strides"], s["padding"])
    if kind == "attention":
        return stax.GlobalSelfAttention(
            n_chan_out=8,
            n_chan_key=8,
            n_chan_val=8,
            n_heads=4,
            linear_scaling=s["scaling"] == "linear",
            W_key_std=s.get("qk", 1.0),
            W_value_std=s.get("value", 1.0),
            W_out_std=s.get("out", 1.0),
            b_std=s["b"],
            attention_mechanism=s["mechanism"].upper(),
        )
    if kind == "residual":
        around = stax.Identity() if s["shortcut"] is None else build(s["shortcut"])
        return stax.serial(stax.FanOut(2), stax.parallel(build(s["body"]), around), stax.FanInSum())
    return {"global": stax.GlobalAvgPool, "flatten": stax.Flatten, "norm": stax.LayerNorm}[kind]()


def stax_activation(stax, name, parameters):
    return {
        "relu": stax.Relu,
        "leaky_relu": stax.LeakyRelu,
        "two_slopes": stax.ABRelu,
        "abs": stax.Abs,
        "erf": lambda b=1.0: stax.Erf(1.0, b),
        "gelu": stax.Gelu,
        "sin": stax.Sin,
        "cos": stax.Cos,
        "wave": stax.Sin,
        "gaussian": lambda b=1.0: stax.Gaussian(1.0, -b),
        "exp": stax.Exp,
        "sign": stax.Sign,
        "linear": stax.Identity,
        "monomial": stax.Monomial,
        "polynomial": lambda *c: stax.Polynomial(c),
        "rectified_power": stax.RectifiedMonomial,
        "hermite": stax.Hermite,
    }[name](*parameters)


def main():
    import jax

    jax.config.update("jax_enable_x64", True)
    from neural_tangents import stax

    table = {}
    for name, (_, parametrisation, layers) in SPECS.items():
        _, _, kernel = stax.serial(*(stax_layer(x, parametrisation) for x in layers))
        values = kernel(inputs(name, 3, 0), inputs(name, 2, 1), ("nngp", "ntk"))
        equal = lambda k: np.einsum("nmhhww->nmhw", k) if np.ndim(k) == 6 else np.asarray(k)
        table[name] = {"nngp": equal(values.nngp).tolist(), "ntk": equal(values.ntk).tolist()}
        print(name, equal(values.ntk).shape, flush=True)
    rows = (f"{json.dumps(name)}: {json.dumps(values)}" for name, values in table.items())
    PLACE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
