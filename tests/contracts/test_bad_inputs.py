"""Every bad input ends in a sentence that names the argument; what may look bad and is not, is
listed with its reason.

The calls run as a user types them: in a process without the tests' own type checks, with JAX's flag
for 64 bit off.
"""

import json
import re
import subprocess
import sys

import pytest

PREAMBLE = """
import functools, json, sys, tempfile, warnings
import numpy as np, jax, jax.numpy as jnp, xarray as xr, wideflow as wf
warnings.simplefilter("ignore")
obs, T = wf.observables, wf.theorems
x, y = np.eye(3), np.array([0.3, -0.5, 0.8])
net = wf.Shallow.init(0, features=3, width=4)
net2 = wf.Shallow.init(0, features=3, width=3, outputs=2)
data = wf.Dataset(x, y)
data2 = wf.Dataset(x, np.array([[0.3, 5.0], [0.2, -1.0], [1.0, 2.0]]))
gd, flow = wf.GradientDescent(0.1), wf.GradientFlow()
f = lambda p, v: jnp.dot(p, v) ** 2
p0, p1 = np.array([1.0, 0.5, -0.3]), np.array([2.0, 0.1, -0.4])
make = lambda key, width: ((lambda w, v: v @ w.sum(0)), jax.random.normal(key, (width, 3)))
R = functools.partial(wf.WideRegressor, width=8, epochs=3, random_state=0)
X = np.random.default_rng(0).normal(size=(20, 3))
t = X[:, 0] + 0.1 * X[:, 1]
two = wf.BiasedTwoLayer(x, np.ones(3), np.ones(3))
three = wf.BiasedThreeLayer(x, np.ones(3), np.ones((4, 3)), np.ones(4), np.ones(4))
forty = wf.Dataset(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0))
spec = {"experiment": "caron2023-figure1", "size": "smoke"}
folder = tempfile.TemporaryDirectory()
table = folder.name + "/table.csv"
_ = open(table, "w").write("a,b,c\\n1,2,3\\n4,5,7\\n5,1,2\\n")
"""

RUNNER = """
for call in json.loads(sys.stdin.read()):
    try:
        answer = ["accepted", repr(eval(call))[:200], ""]
    except Exception as error:
        trace = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        answer = [type(error).__name__, str(error), trace.tb_frame.f_code.co_filename]
    print(json.dumps(answer), flush=True)
"""

# (call, the argument that the sentence must name)
CASES = {
    "in general": [
        ("wf.train('net', data, wf.GradientDescent(0.1), steps=1)", "model"),
        ("wf.train(net, data, 0.1, steps=1)", "dynamics"),
        ("wf.train(net, data, gd, steps=3, record=[3])", "record"),
        ("wf.train(net, data, gd, steps=3, precision='half')", "precision"),
        ("wf.train(net, data, gd, steps=2.5)", "steps"),
        ("wf.GradientDescent(-1)", "rate"),
        ("wf.GradientDescent(float('nan'))", "rate"),
        ("wf.scalings.Zipf(gamma=-0.1)", "gamma"),
        ("wf.scalings.Zipf(gamma=0.5, alpha=1.2)", "alpha"),
        ("wf.Dataset(x, y[:2])", "inputs"),
        ("wf.Dataset(x * np.nan, y)", "inputs"),
        ("wf.Shallow(np.eye(3), np.ones(4))", "output"),
        ("wf.Shallow.init('seven', features=3, width=4)", "key"),
        ("wf.Shallow.init(jax.random.key(0), features=3, width=0)", "width"),
        ("wf.data.uci('boston')", "name"),
    ],
    "train": [
        ("wf.train(net, data, gd, steps=10**30)", "steps"),
        ("wf.train(net, data, gd, time=float('nan'))", "time"),
        ("wf.train(net, data, gd, time=float('inf'))", "time"),
        ("wf.train(net, data, gd, time='long')", "time"),
        ("wf.train(net, data, flow, time='1')", "time"),
        ("wf.train(net, data, gd, steps=10, every=[1.5, 2.7])", "every"),
        ("wf.train(net, data, gd, steps=10, every=[float('nan')])", "every"),
        ("wf.train(net, data, gd, steps=10, every=['a'])", "every"),
        ("wf.train(net, data, gd, steps=10**12, every=1)", "every"),
        ("wf.train(net, data, flow, time=1.0, every=1e-12)", "every"),
        ("wf.train(net, data, gd, steps=3, record=5)", "record"),
        ("wf.train(net, data, gd, steps=3, record=None)", "record"),
        ("wf.train(net, data, gd, steps=3, record=[obs.KernelMinEigenvalue])", "record"),
        ("wf.train(net, data, gd, steps=3, record=[lambda s: 'text'])", "record"),
        ("wf.train(net, data, gd, steps=3, record=[lambda s: {'a': 1}])", "record"),
        ("wf.train(net, data, gd, steps=3, record=[lambda: 1])", "record"),
        ("wf.train(net, data, gd, steps=3, loss='mse')", "loss"),
        ("wf.train(net, data, gd, steps=3, loss=wf.losses.MeanSquares)", "loss"),
        ("wf.train(net, data, gd, steps=3, loss=lambda a, b: 0.0)", "loss"),
        ("wf.train(net2, data2, gd, steps=3, loss=wf.losses.CrossEntropy())", "targets"),
        (
            "wf.train(net, wf.Dataset(x, [0.3, 5.0, -2.0]), gd, steps=3, "
            "loss=wf.losses.Logistic())",
            "targets",
        ),
        ("wf.train(net, data, wf.SGD(0.1, batch=2), steps=3, key=2**100)", "key"),
        ("wf.train(net, data, gd, steps=3, stop_below='x')", "stop_below"),
        ("wf.train(net, data, gd, steps=3, stop_below=float('nan'))", "stop_below"),
        ("wf.train(net, data, gd, steps=3, progress=5)", "progress"),
        ("wf.train(net, data, gd, steps=3, progress=lambda: None)", "progress"),
        ("wf.train([net, net], data, gd, steps=3, axis='step')", "axis"),
        ("wf.train([net, net], data, gd, steps=3, axis='time')", "axis"),
        ("wf.train([net, net], data, gd, steps=3, axis='loss')", "axis"),
        ("wf.train([net, net], data, gd, steps=3, axis=5)", "axis"),
        ("wf.train(net, data, gd, steps=3, devices=1.5)", "devices"),
        ("wf.train(net, data, gd, steps=3, devices=['cpu'])", "devices"),
        ("wf.train(net, data, gd, steps=3, devices=[])", "devices"),
    ],
    "phase": [
        ("wf.phase(data, ('width',))", "axes"),
        ("wf.phase(data, ('width', 'hue'))", "axes"),
        ("wf.phase(data, {'width': 'all', 'rate': None})", "width"),
        ("wf.phase(data, {'richness': (-1.0, 2.0), 'width': None})", "richness"),
        ("wf.phase('data')", "data"),
        ("wf.phase(data)", "data"),
        ("wf.phase(data2)", "data"),
        ("wf.phase(data, runs='many')", "runs"),
        ("wf.phase(data, minutes=float('nan'))", "minutes"),
        ("wf.phase(data, loss=0.0)", "loss"),
        ("wf.phase(data, loss='low')", "loss"),
        ("wf.phase(data, activation='rectified')", "activation"),
        ("wf.phase(data, seed=-1)", "seed"),
        ("wf.phase(data, samples=2.5)", "samples"),
        ("wf.phase.parse_axis('width=1;2')", "--axis"),
    ],
    "kernels": [
        ("wf.limits.kernels('relu')", "architecture"),
        ("wf.limits.kernels(wf.architecture.mlp(), rates=[-1.0, 1.0])", "rates"),
        ("wf.limits.kernels(wf.architecture.mlp(), parametrisation='mup')", "parametrisation"),
        ("wf.limits.kernels(wf.architecture.mlp()).ntk(np.nan * x)", "x"),
        ("wf.limits.kernels(wf.architecture.mlp()).ntk(x[0])", "x"),
        ("wf.limits.kernels(wf.architecture.mlp()).ntk([['a']])", "x"),
        ("wf.limits.kernels(wf.architecture.mlp()).nngp(x, x[:, :2])", "x2"),
        ("wf.architecture.Dense(8, weight_std=-1.0)", "weight_std"),
        ("wf.architecture.Dense(8, bias_std=-1.0)", "bias_std"),
        ("wf.limits.posterior(-x, y)", "nngp"),
        ("wf.limits.ensemble(wf.limits.KernelPair(x, -x), y)", "train.ntk"),
        ("wf.limits.regress(wf.limits.kernels(wf.architecture.mlp()), x, y, ridge=0.0)", "ridge"),
        ("wf.limits.open_kernel('nowhere')", "path"),
        ("wf.activations.polynomial([])", "coefficients"),
        ("wf.activations.hermite(1.5)", "degree"),
    ],
    "limits": [
        ("wf.limits.Overlaps([[2.0]], [[1.0]], [[1.0]], [1.0])", "M"),
        ("wf.limits.Overlaps('x', [[1.0]], [[1.0]], [1.0])", "M"),
        ("wf.limits.OnlineEquations('erf', 'erf', [0.0])", "coefficients"),
        ("wf.limits.OnlineEquations(rate=float('nan'))", "rate"),
        ("wf.limits.OnlineEquations('erf', 5)", "activation"),
        ("wf.limits.order_parameters('equations', 1, [1.0])", "equations"),
        ("wf.limits.leap(lambda z: 0 * z[0])", "g"),
        ("wf.limits.information_exponent(5)", "g"),
        ("wf.limits.plateau([1.0, 2.0], [1.0])", "times"),
        ("wf.limits.mean_ntk(x * np.nan, 'relu')", "inputs"),
        ("wf.limits.mean_ntk('x', 'relu')", "inputs"),
        ("wf.limits.mean_ntk(np.ones((0, 3)), 'relu')", "inputs"),
        ("wf.limits.mean_ntk(x * 1j, 'relu')", "inputs"),
        ("wf.limits.hidden_gram(x, 'relu', depth='two')", "depth"),
        ("wf.limits.hidden_gram(x * np.nan, 'relu')", "inputs"),
        ("wf.limits.lazy_kernel(x, 'relu', magnitude=-1.0)", "magnitude"),
        ("wf.limits.kappa(np.ones((0, 3)), 'relu')", "inputs"),
        ("wf.limits.kappa(x * np.inf, 'relu')", "inputs"),
        ("wf.limits.slope_gram(np.ones((2, 3)), 'relu')", "gram"),
        ("wf.limits.slope_gram(np.array([[1.0, 5.0], [5.0, 1.0]]), 'relu')", "gram"),
        ("wf.limits.spectrum(np.ones((2, 3)))", "gram"),
        ("wf.limits.spectrum(np.eye(2) * np.nan)", "gram"),
        ("wf.limits.spectrum(np.array([[1.0, 5.0], [0.0, 1.0]]))", "gram"),
        ("wf.limits.random_ntg('k', x, wf.scalings.Zipf(), 'relu')", "key"),
        ("wf.limits.linearised(np.eye(2), np.ones(2), [])", "times"),
        ("wf.limits.linearised(np.eye(2) * np.nan, np.ones(2), [0.0, 1.0])", "kernel"),
        ("wf.limits.linearised(np.eye(2), np.ones(2) * np.nan, [0.0, 1.0])", "targets"),
        (
            "wf.limits.linearised(np.array([[1.0, 9.0], [0.0, 1.0]]), np.ones(2), [0.0, 1.0])",
            "kernel",
        ),
        ("wf.limits.linearised(-np.eye(2), np.ones(2), [0.0, 1.0])", "kernel"),
        ("wf.limits.mean_field(np.eye(2), np.ones(2), 'tanh', [])", "times"),
        (
            "wf.limits.train_node_limit(wf.limits.node_limit(0, x, wf.scalings.Zipf(), 'relu', "
            "nodes=5), y, rate=-1.0, steps=3)",
            "rate",
        ),
        (
            "wf.limits.train_node_limit(wf.limits.node_limit(0, x, wf.scalings.Zipf(), 'relu', "
            "nodes=5), np.ones(7), rate=0.1, steps=3)",
            "targets",
        ),
        (
            "wf.limits.train_node_limit(wf.limits.node_limit(0, x, wf.scalings.Zipf(), 'relu', "
            "nodes=5), y, rate=0.1, steps=0)",
            "steps",
        ),
        ("wf.limits.mean_weight_velocity(x, 'relu', np.ones(3) * np.nan)", "node_weights"),
        ("wf.limits.weight_speed(x, np.ones(9), 'relu', [0.5])", "targets"),
        ("wf.limits.hermite.population_loss(np.eye(3) * np.nan, [1.0, 1.0, 1.0])", "weights"),
        ("wf.limits.hermite.order_losses(np.eye(3), [1.0] * 3, orders=(1.5,))", "orders"),
        ("wf.limits.hermite.order_losses(np.eye(3), [1.0] * 3, orders=())", "orders"),
        (
            "wf.limits.radial.reduced_flow(wf.limits.radial.UniformBall(3), 0.1, [-0.1], [0.1], "
            "1.0, max_steps=0)",
            "max_steps",
        ),
    ],
    "observables": [
        ("obs.tangent_gram('net', x)", "model"),
        ("obs.tangent_gram(net, x, output=7)", "output"),
        ("obs.tangent_gram(net, x, output=-1)", "output"),
        ("obs.tangent_gram(net2, x, output=2)", "output"),
        ("obs.tangent_gram(net2, x, output=1.5)", "output"),
        ("obs.tangent_gram(net, np.ones((0, 3)))", "inputs"),
        ("obs.KernelMinEigenvalue(samples=0)", "samples"),
        ("obs.KernelMinEigenvalue(samples=-1)", "samples"),
        ("obs.KernelMinEigenvalue(samples=1.5)", "samples"),
        ("obs.KernelMinEigenvalue(output='first')", "output"),
        ("wf.train(net, data, gd, steps=2, record=[obs.KernelMinEigenvalue(output=5)])", "output"),
        ("wf.train(net, data, gd, steps=2, record=[obs.KernelMinEigenvalue(output=-2)])", "output"),
        ("wf.train(net2, data2, gd, steps=2, record=[obs.KernelAlignment(output=2)])", "output"),
        ("obs.ActiveFraction(interval=(1.0, 0.0))", "interval"),
        ("obs.ActiveFraction(interval=(float('nan'), 1.0))", "interval"),
        ("obs.ActiveFraction(interval=(1.0,))", "interval"),
        ("obs.ActiveFraction(interval='wide')", "interval"),
        ("obs.DirectionMasses(threshold='x')", "threshold"),
        ("obs.IncrementNorm(part='third')", "part"),
        ("obs.IncrementNorm(power=-2.0)", "power"),
        ("obs.KernelMaxEigenvalue(iterations=0)", "iterations"),
        ("obs.OrderLosses(orders=(1.5,))", "orders"),
        ("obs.OrderLosses(orders=())", "orders"),
        ("obs.SignChange(samples=0)", "samples"),
        ("obs.OutputsAt(np.ones(3))", "inputs"),
        ("obs.OutputsAt('x')", "inputs"),
        ("obs.FeatureScatter(np.ones(3), np.ones(4))", "second"),
        ("obs.PrunedRisk(x, np.ones(7), [1])", "targets"),
        ("obs.PrunedRisk(x, y, [])", "levels"),
        ("obs.PrunedRisk(x, y, [1], convention='mine')", "convention"),
        ("obs.Accuracy(test='yes')", "test"),
        ("wf.train(net, data, gd, steps=2, record=[obs.SignChange()])", "model"),
        (
            "wf.train(wf.Homogeneous(np.eye(3)), data, gd, steps=2, record=[obs.ActiveFraction()])",
            "ActiveFraction",
        ),
        (
            "wf.train(wf.Homogeneous(np.eye(3)), wf.populations.GaussianAbsTeacher([1.0]*3), gd, "
            "steps=2, record=[obs.Risk()])",
            "record",
        ),
        ("obs.safe_rate(net, x)", "data"),
        ("obs.late_exponent([1.0, 2.0], [1.0, 0.5, 0.1], 0.5)", "losses"),
        ("obs.path_integral([1.0, 2.0], [1.0])", "slopes"),
        ("obs.path_integral([2.0, 1.0], [1.0, 1.0])", "times"),
        ("obs.row_ball_projection(np.eye(2), -1.0)", "radius"),
        ("obs.row_norm(np.ones(3))", "matrix"),
        ("obs.ranking_quality([1.0, 2.0], [True])", "winners"),
        ("obs.neuron_sets(np.eye(3), [1.0])", "thresholds"),
        ("obs.sphere_extremes(net, starts=0)", "model"),
        ("obs.two_layer_bound(net, 5, 1.0)", "model"),
    ],
    "theorems": [
        ("T.caron2023.Theorem41()(net, data, failure_probability='small')", "failure_probability"),
        ("T.caron2023.Theorem41()(net, 'data')", "data"),
        ("T.caron2023.Theorem41()(net, wf.Dataset(np.eye(4), np.ones(4)))", "inputs"),
        ("T.caron2023.LemmaD3()(net, data, c=-1.0)", "c"),
        ("T.caron2023.Proposition31()(x * np.nan, 'relu')", "inputs"),
        ("T.caron2023.Theorem51()(0, x, np.ones(9), 'relu', [0.5, 0.5])", "inputs"),
        ("T.caron2023.chernoff_lower(0, 0.5, 1.0, 1.0)", "dimension"),
        ("T.chen2022.Theorem1()(net, data, variant='x')", "variant"),
        ("T.chen2022.Certificate()(net, data, variant='blunt')", "variant"),
        ("T.chen2022.Lemma2()(net, data, draws=0)", "draws"),
        ("T.chen2022.kappa(float('nan'), 1.0, 1.0, 1.0, (0.0, 1.0))", "smallest"),
        ("T.chen2022.features_for_gram(1.0, 0, 0.1, 0.1)", "samples"),
        ("T.li2020.FiniteConvergence()(-1.0, [1.0, 1.0])", "loss"),
        ("T.li2020.FiniteConvergence()(0.1, [])", "coefficients"),
        ("T.li2020.FiniteConvergence()(0.1, [1.0], share=-1.0)", "share"),
        ("T.li2020.LateDecay()([3.0, 2.0, 1.0], [1.0, 0.5, 0.2], 0.5)", "times"),
        ("T.li2020.LateDecay()([1.0, 2.0, 3.0], [1.0, 0.5], 0.5)", "times"),
        ("T.li2020.MomentDecay()([1.0, 2.0], [1.0, float('nan')], [0.1, 0.1])", "second"),
        ("T.li2020.SecondMomentRange()([], [1.0, 1.0])", "second_moments"),
        ("T.li2020.Lottery()(np.eye(3), np.eye(4))", "initial"),
        ("T.ren2023.TimeToLoss()(0, 0.1, 1.0)", "d"),
        ("T.ren2023.TimeToLoss()(5, -0.1, 1.0)", "epsilon"),
        ("T.ren2023.LemmaC10()([10, 20], [1.0])", "dimensions"),
        ("T.ren2023.LemmaC5()([0.0, 1.0], [1.0, float('nan')], 1.0)", "weights"),
        ("T.ren2023.LemmaC11()([1.0], [1.0, 1.0])", "weights"),
        ("T.ren2023.LemmaD15()('law', 0.1, -0.1, 0.1)", "law"),
        (
            "T.ren2023.StepSize()(wf.limits.radial.UniformBall(3), 0.1, -0.1, 0.1, rate=-1.0)",
            "rate",
        ),
        ("T.ren2023.Lemma43()(wf.limits.radial.UniformBall(3), 'path')", "path"),
        ("T.allenzhu2018.Lemma57()([0.1], [0.1, 0.2])", "rates"),
        ("T.allenzhu2018.Lemma57()([], [])", "rates"),
        (
            "T.allenzhu2018.Lemma58()(-1.0, first_width=10, second_width=10, first_radius=1.0, "
            "second_radius=1.0)",
            "error",
        ),
        ("T.allenzhu2018.LemmaA1()([float('nan')] * 10, width=10, deviation=1.0)", "sums"),
        ("T.allenzhu2018.LemmaA1()([], width=10, deviation=1.0)", "sums"),
        ("T.allenzhu2018.LemmaA2()([0.1], width=0, deviation=1.0)", "width"),
        ("T.allenzhu2018.LemmaA5()(-3)", "degree"),
        ("T.allenzhu2018.LemmaA6()(2.5, 1.0, 0.5)", "degree"),
        ("T.allenzhu2018.LemmaA6()(3, 1.0, 2.0)", "x1"),
        ("T.allenzhu2018.WidthIndependence()([], [], baseline=1.0)", "widths"),
        ("T.allenzhu2018.Lemma59()(net, x, np.ones(3), 1.0, 1.0)", "model"),
        (
            "T.allenzhu2018.Theorem41()(0.1, 'prediction', width=10, samples=10, iterations=10, "
            "error=0.1)",
            "prediction",
        ),
    ],
    "certify": [
        ("wf.certify(net, data, failure_probability='x')", "failure_probability"),
        ("wf.certify(net, data, train='yes')", "train"),
    ],
    "probe": [
        ("wf.probe(f, p0, p1, np.ones((0, 3)))", "inputs"),
        ("wf.probe(f, p0, p1, 'x')", "inputs"),
        ("wf.probe(f, p0, p1, None)", "inputs"),
        ("wf.probe(f, p0, p1, x, targets=y * np.nan)", "targets"),
        ("wf.probe(f, p0, p1, x, batched='yes')", "batched"),
        ("wf.coordinate_check(5, [8, 16], x, y)", "constructor"),
        ("wf.coordinate_check(make, ['a', 'b'], x, y)", "widths"),
        ("wf.coordinate_check(make, 8, x, y)", "widths"),
        ("wf.coordinate_check(lambda key, width: 'net', [8, 16], x, y)", "constructor"),
        ("wf.coordinate_check(lambda key: 'net', [8, 16], x, y)", "constructor"),
        ("wf.coordinate_check(make, [8, 16], x, y, optimiser=5)", "optimiser"),
        ("wf.torch.from_torch(5)", "module"),
        ("wf.torch.Watch(5, x)", "module"),
        ("wf.torch.lightning_callback(x, every=0)", "every"),
    ],
    "sizes that no machine holds": [
        ("wf.data.sphere(0, 10**13, 3)", "samples"),
        ("wf.data.sphere_sines(0, samples=10**13, features=3)", "samples"),
        ("wf.data.random_labels(0, samples=10**13)", "samples"),
        ("wf.data.waves(0, samples=10**13)", "samples"),
        ("wf.data.quadratic_teacher(0, samples=10**13)", "samples"),
        ("wf.data.one_hot([0, 1], classes=10**13)", "labels"),
        ("wf.populations.MultiIndex('erf', x).sample(0, 10**13)", "samples"),
        ("wf.Homogeneous.init(0, features=3, width=10**13)", "width"),
        ("wf.MeanFieldStack.init(0, dimensions=[3, 1], widths=[10**13])", "widths"),
        ("wf.Deep.init(0, wf.mlp(1, 10**13), 3)", "layer 1"),
        ("wf.BiasedTwoLayer.init(0, features=3, width=10**13, output_std=1.0)", "width"),
        ("wf.scalings.Zipf().node_scales(10**13)", "width"),
        ("wf.limits.limit_nodes(wf.scalings.Zipf(), 10**13)", "count"),
        ("wf.Shallow.init(0, features=3, width=10**30)", "width"),
        ("wf.taylor(net, 40)", "order"),
    ],
    "arrays of other kinds": [
        ("wf.Dataset(x, ['1', '2', '3'])", "targets"),
        ("wf.Dataset([[10**400, 1]], [1.0])", "inputs"),
        ("wf.Dataset(np.ma.masked_array(x, mask=x > 0), y)", "inputs"),
        ("net.outputs(np.ma.masked_array(x, mask=x > 0))", "inputs"),
        ("wf.Dataset(x, y, features=('a', 'a', 'b'))", "features"),
        ("data.objective(wf.losses.MeanSquares(), 'net')", "model"),
        ("data.objective(wf.losses.MeanSquares(), net).value('net')", "model"),
        ("data.objective(wf.losses.MeanSquares(), net).batch([0, 99])", "indices"),
        ("data.objective(wf.losses.MeanSquares(), net).batch(np.array([0.5]))", "indices"),
        ("obs.tangent_products(net, x)(np.ones(5))", "vector"),
        ("wf.limits.kernels(wf.architecture.mlp()).ntk(np.zeros((0, 3)))", "x"),
        ("wf.limits.mean_ntk(x * 1e200, 'relu')", "inputs"),
        ("wf.certify(net, wf.Dataset(0 * x, y))", "data"),
        ("wf.certify(net, wf.Dataset(1e160 * x, y))", "data"),
        ("wf.certify(net, wf.Dataset(x, 1e200 * y))", "data"),
    ],
    "functions of a user's own": [
        ("wf.Shallow(x, y, activation=lambda z: z * 1j)", "activation"),
        ("wf.embeddings.Function(lambda: 0)", "function"),
        ("wf.populations.MultiIndex(lambda r: r[7], x[:2])", "teacher"),
        ("wf.populations.MultiIndex(lambda: 0, x[:2])", "teacher"),
        ("wf.limits.OnlineEquations('erf', lambda: 0)", "teacher"),
        (
            "wf.limits.order_parameters(wf.limits.OnlineEquations('erf', lambda r: r[4]), "
            "wf.limits.Overlaps([[0.3]], [[1.0]], [[1.0]], [1.0]), [1.0])",
            "teacher",
        ),
        ("wf.limits.information_exponent(lambda r: r[5], indices=2)", "g"),
        ("wf.limits.leap(lambda r: 'x')", "g"),
        ("wf.limits.monte_carlo_kernel(0, lambda k: 'net', x, samples=3)", "draw"),
        ("wf.limits.monte_carlo_kernel(0, lambda: 0, x, samples=3)", "draw"),
        ("wf.train(net, data, gd, steps=3, record=[lambda s: 1j])", "record"),
        ("wf.train(net, data, gd, steps=3, record=[lambda s: float(s.time)])", "record"),
    ],
    "arguments that contradict each other": [
        ("wf.SGD(0.1, batch=2, order=[[0, 1]], replace=True)", "replace"),
        ("wf.train(net, data, gd, steps=2, test=data2)", "test"),
        ("wf.train(net, data, gd, steps=2, record=[obs.OutputsAt(x, name='loss')])", "record"),
        ("wf.train(net, data, gd, steps=2, record=[obs.OutputsAt(x, name='time')])", "record"),
        ("wf.train(net, data, gd, steps=2, record=[obs.OutputsAt(x, axis='step')])", "record"),
        ("wf.limits.plateau([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], drop=0.5)", "drop"),
        ("wf.limits.output_flow(x, -x, [1.0])", "targets"),
        ("wf.limits.mean_kernel_velocity(x, 'tanh', [0.5, -0.5])", "node_weights"),
        ("wf.limits.mean_weight_velocity(x, 'tanh', [0.5, -0.5])", "node_weights"),
        ("wf.scalings.Weights([-0.5, 1.5])", "sequence"),
        ("wf.scalings.Weights([0.5, np.nan])", "sequence"),
        ("obs.gradient_kernels(wf.Deep.init(0, wf.mlp(1, 4), 3), x, output=3)", "output"),
        ("obs.hessian_eigenvalues(net, data, 50)", "count"),
        ("obs.centred_alignment(np.ones((3, 3)), x)", "first"),
        ("obs.centred_alignment(x, 0 * x)", "second"),
        ("obs.first_time([2.0, 1.0], [True, False])", "times"),
        ("obs.weak_recovery_time([2.0, 1.0], [0.1, 0.9])", "times"),
        ("obs.neuron_sets(x, [1.0, 1.0, 1.0], rho=-1.0)", "rho"),
        ("obs.sign_changes(three, two, x)", "start"),
        ("obs.bilinear_sup(three, x, np.ones(3), 0.1, 0.1, output=4)", "output"),
        ("obs.two_layer_bound(two, 5, 1.0, output=4)", "output"),
        ("obs.two_layer_sup(jax.random.key(0), two, x, np.ones(3), 1.0, starts=0)", "starts"),
    ],
    "tables": [
        ("wf.data.read_csv(table, target=True)", "target"),
        ("wf.data.read_csv(table, target='c', drop=('c',))", "drop"),
        ("wf.data.read_csv(table, drop=('c',))", "drop"),
        ("wf.data.read_csv(table, drop=5)", "drop"),
        ("wf.data.read_csv(table, rows=0)", "rows"),
        ("wf.data.read_csv(table, rows='all')", "rows"),
        ("wf.data.read_csv(table, separator=5)", "separator"),
        ("wf.data.read_csv(table, constant='ignore')", "constant"),
    ],
    "machines": [
        ("wf.phase(forty, workers=0)", "workers"),
        ("wf.phase(forty, out=5)", "out"),
        ("wf.phase(forty, progress=5)", "progress"),
        ("wf.phase(forty, scheduler=5)", "scheduler"),
        ("wf.phase(forty, security='nowhere')", "security"),
        ("wf.phase(forty, scheduler='tls://127.0.0.1:1')", "security"),
        ("wf.sweep(spec, scheduler=5)", "scheduler"),
        ("wf.sweep(spec, scheduler='tls://127.0.0.1:1')", "security"),
        ("wf.sweep(spec, scheduler='tls://127.0.0.1:1', security=5)", "security"),
        ("wf.sweep(spec, out=5)", "out"),
    ],
    "figures and claims": [
        ("wf.figures.Line([0, 1], [0, 1], low=[0])", "low"),
        ("wf.figures.Points([0, 1], [0, 1], size=-1)", "size"),
        ("wf.figures.Points([0, 1], [0, 1], errors=[-1, -1])", "errors"),
        ("wf.figures.Bars([1], [1])", "names"),
        (
            "wf.figures.FigureSpec('t', [wf.figures.Panel('t', 'x', 'y', [wf.figures.HLine(1)])], "
            "columns=0)",
            "columns",
        ),
        ("wf.save_figure('spec', 'stem')", "spec"),
        ("wf.Claim('text', value=1.0, at_least=2.0, at_most=1.0)", "at_least"),
        ("wf.Claim('text', value=1.0, expected=1.0, tolerance=-0.1)", "tolerance"),
    ],
    "estimators": [
        ("R().fit(X, ['a'] * 20)", "y"),
        ("R(rate='auto').fit(X, t)", "rate"),
        ("R(validation_fraction='x').fit(X, t)", "validation_fraction"),
        ("R(validation_fraction=0.999).fit(X, t)", "validation_fraction"),
        ("R(early_stopping='maybe').fit(X, t)", "early_stopping"),
        ("R(random_state=-1).fit(X, t)", "random_state"),
    ],
    "dynamics": [
        ("wf.GradientDescent('0.1')", "rate"),
        ("wf.GradientDescent(None)", "rate"),
        ("wf.GradientDescent([0.1])", "rate"),
        ("wf.GradientDescent(np.array([0.1, 0.2]))", "rate"),
        ("wf.GradientDescent(1j)", "rate"),
        ("wf.GradientDescent(True)", "rate"),
        ("wf.SGD(0.1, batch=2, replace='yes')", "replace"),
        ("wf.train(net, data, wf.SGD(0.1, batch=2, order=[[0, 99]]), steps=1)", "order"),
        ("wf.train(net, data, wf.SGD(0.1, batch=2, order=[[0, -7]]), steps=1)", "order"),
        ("wf.train(net, data, wf.SGD(0.1, batch=2, order=[[0, 1]]), steps=5)", "order"),
        ("wf.train(net, data, wf.SGD(0.1, batch=2, order=[0, 1]), steps=1)", "order"),
        ("wf.train(net, data, wf.SGD(0.1, batch=2, order=[[0.5, 1.5]]), steps=1)", "order"),
        ("wf.train(net, data, wf.SGD(0.1, batch=3, order=[[0, 1]]), steps=1)", "order"),
        ("wf.GradientFlow(tolerance='tight')", "tolerance"),
        ("wf.ClippedFlow('fast')", "rate"),
        ("wf.BestIterate(5)", "dynamics"),
        ("wf.BestIterate(wf.GradientFlow())", "dynamics"),
        ("wf.LossBelow('x')", "level"),
    ],
    "models": [
        ("wf.Shallow([['a', 'b']], [1.0])", "hidden"),
        ("wf.Shallow([[1.0, 2.0], [3.0]], [1.0, 1.0])", "hidden"),
        ("wf.Shallow(np.eye(3) * 1j, np.ones(3))", "hidden"),
        ("wf.Shallow(np.zeros((3, 0)), np.zeros(3))", "hidden"),
        ("wf.Shallow(None, np.ones(3))", "hidden"),
        ("wf.Shallow(np.eye(3), np.ones(3), activation=lambda z: 'x')", "activation"),
        ("wf.Shallow(np.eye(3), np.ones(3), activation=lambda z: z.sum())", "activation"),
        ("wf.Shallow(np.eye(3), np.ones(3), embedding='quadratic')", "embedding"),
        ("wf.Shallow(np.eye(3), np.ones(3), embedding=wf.embeddings.Quadratic)", "embedding"),
        ("wf.Shallow.init(0, features=3, width=10**13)", "width"),
        ("wf.Shallow.init(0, features=3, width=4, weight_std='x')", "weight_std"),
        ("wf.Shallow.init(0, features=3, width=4, embedding='x')", "embedding"),
        ("net('abc')", "x"),
        ("net.outputs('x')", "inputs"),
        ("wf.Homogeneous(np.eye(3), factor='x')", "factor"),
        ("wf.Homogeneous.init('k', features=3, width=3)", "key"),
        ("wf.MeanFieldStack([np.ones((1, 3))])", "layers"),
        ("wf.MeanFieldStack(5)", "layers"),
        ("wf.MeanFieldStack([(np.ones((1, 2)) * np.nan, np.ones((2, 2)))])", "layers[0]"),
        (
            "wf.MeanFieldStack.init(jax.random.key(0), dimensions=[3, 1], widths=[4], "
            "weight_std=-1.0)",
            "weight_std",
        ),
        ("wf.BiasedTwoLayer(np.eye(3), np.ones(3) * np.nan, np.ones(3))", "bias"),
        ("wf.pruning_curve(net, x, np.ones(7))", "targets"),
        ("wf.embeddings.RandomFeatures(np.ones((2, 2)) * np.nan)", "weights"),
        (
            "wf.Shallow.init(0, features=3, width=4, embedding=wf.embeddings.Function(lambda v: "
            "v[:, :1] * np.nan))",
            "function",
        ),
    ],
    "scalings": [
        ("wf.scalings.Zipf(gamma='0.5')", "gamma"),
        ("wf.scalings.Zipf(gamma=0.5, alpha=None)", "alpha"),
        ("wf.scalings.Weights('abc')", "sequence"),
        ("wf.scalings.Weights(lambda j: 'x').node_scales(2)", "sequence"),
        ("wf.scalings.ABC((0.0, 'x'))", "a"),
        ("wf.scalings.ABC((0.0, float('nan')))", "a"),
        ("wf.scalings.ABC((0.0, 0.5), c=float('inf'))", "c"),
        ("wf.scalings.MeanField(hidden=float('nan'))", "hidden"),
        ("wf.scalings.MeanField(hidden='x')", "hidden"),
        ("wf.scalings.parse_scaling('abc:0,0.5;0,0;0,7')", "scaling"),
        ("wf.scalings.parse_scaling('abc:0,nan;0,0;0')", "scaling"),
        ("wf.scalings.parse_scaling('mf:nan')", "scaling"),
        ("wf.scalings.parse_scaling(None)", "scaling"),
        ("wf.scalings.parse_scaling(5)", "scaling"),
        ("wf.activations.leaky_relu('x')", "slope"),
        ("wf.activations.relu(at_kink=float('nan'))", "at_kink"),
        ("wf.activations.custom(5)", "activation"),
        ("wf.activations.custom(lambda z: z, lipschitz=-1.0)", "lipschitz"),
    ],
    "data": [
        ("wf.Dataset(x * 1j, y)", "inputs"),
        ("wf.Dataset(x, y, name=5)", "name"),
        ("wf.Dataset(np.array([['2020-01-01']], dtype='datetime64[D]'), [1.0])", "inputs"),
        ("data.take([99])", "rows"),
        ("data.take([])", "rows"),
        ("data.take([0.5])", "rows"),
        ("data.take('x')", "rows"),
        ("wf.data.one_hot(np.array([], dtype=int))", "labels"),
        ("wf.data.split('data', (0.5, 0.5))", "data"),
        ("wf.data.sphere_sines('key', samples=3)", "key"),
        ("wf.data.random_labels(jax.random.key(0), samples=3, bound=-1)", "bound"),
        ("wf.data.prepare('data')", "data"),
        ("wf.data.check_data_assumptions(np.eye(3) * np.nan, np.ones(3))", "inputs"),
        ("wf.data.concept_data(jax.random.key(0), 'concept', samples=3, features=3)", "concept"),
        ("wf.data.read_csv(None)", "path"),
    ],
}

ACCEPTED = {
    "wf.train(net, wf.populations.GaussianAbsTeacher([1.0, 1.0, 1.0]), gd, steps=1)": "ReLU "
    "networks have an exact population loss too",
    "wf.train(net, data, wf.TruncatedDescent(0.1, 1.0), steps=3)": "truncation caps the rows of "
    "any hidden layer",
    "wf.train(net, data, gd, steps=2, record=[obs.Accuracy(test=False)])": "with one output the "
    "sign tells the class",
    "wf.limits.hidden_gram(x, 'relu', depth=0)": "depth 0 is the inputs' own Gram matrix",
    "wf.limits.hermite.population_loss(np.eye(3), [-1.0, 1.0, 1.0])": "the formula holds for "
    "coefficients of any sign",
    "wf.limits.hermite.population_gradient(np.zeros((2, 3)), [1.0] * 3)": "a zero row has "
    "gradient 0, as documented",
    "T.chen2022.Certificate()(net, data, xr.Dataset())": "an unmet hypothesis answers before the "
    "table is read",
    "T.chen2022.width_for_activity(0.0, 5, 0.1)": "with a floor of 0 no width suffices: infinity "
    "is the answer",
    "wf.Homogeneous.init(0, features=3, width=3)": "a whole number is a seed everywhere",
    "wf.data.waves(jax.random.key(0), samples=3, inputs=7)": "waves have any number of inputs",
    "wf.data.quadratic_teacher(jax.random.key(0), samples=3, features=4, part='x')": "`part` "
    "names the draw; any name is one",
}

OWN_WORDS = {
    "wf.train(net, data, gd, steps=3, rate=0.1)": (
        "TypeError",
        "unexpected keyword argument 'rate'",
    ),
    "wf.train(net, data, gd, steps=3, record=[lambda s: s.nothing])": (
        "AttributeError",
        "nothing",
    ),  # the user's own function, his own error
}


def ask(calls) -> dict[str, tuple[str, str, str]]:
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + RUNNER],
        input=json.dumps(list(calls)),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(calls), f"ended at {list(calls)[len(lines)]}: {done.stderr[-2000:]}"
    return {call: tuple(json.loads(line)) for call, line in zip(calls, lines, strict=True)}


@pytest.fixture(scope="module")
def answers():
    bad = [call for cases in CASES.values() for call, _ in cases]
    return ask([*bad, *ACCEPTED, *OWN_WORDS])


@pytest.mark.parametrize("group", CASES)
def test_bad_input_ends_in_a_sentence_that_names_the_argument(answers, group):
    wrong = []
    for call, argument in CASES[group]:
        kind, message, where = answers[call]
        sentence = kind in ("ValueError", "TypeError") and f"`{argument}" in message
        if not (sentence and "wideflow" in where):
            wrong.append(f"{call}\n    {kind}: {message[:200]} [{where}]")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("call", ACCEPTED)
def test_what_only_looks_bad_is_accepted(answers, call):
    kind, shown, _ = answers[call]
    assert kind == "accepted", shown
    assert not re.search(r"\bnan\b", shown) or "Verdict" in shown


@pytest.mark.parametrize("call", OWN_WORDS)
def test_errors_that_speak_for_themselves_pass_unchanged(answers, call):
    kind, words = OWN_WORDS[call]
    assert answers[call][0] == kind
    assert words in answers[call][1]
