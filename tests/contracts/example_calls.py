"""A small call of every exported function and of every model's methods, as a user would type it.
New names come with one.
"""

# Few shapes: every operation is compiled anew for each.
PREAMBLE = """
import warnings
import numpy as np, jax, jax.numpy as jnp, wideflow as wf
warnings.simplefilter("ignore")
obs, L, H, N = wf.observables, wf.limits, wf.limits.hermite, np.random.default_rng(0)
x, x2 = N.normal(size=(4, 3)), N.normal(size=(4, 3))
y, y2 = N.normal(size=4), N.normal(size=(4, 2))
a, w = np.array([0.5, 0.3, 0.2]), N.normal(size=(4, 3))
gram = x @ x.T / 3
net = wf.Shallow(N.normal(size=(4, 3)), [1.0, -1.0, 1.0, -1.0], activation="tanh")
relu = wf.Shallow(N.normal(size=(4, 3)), [1.0, -1.0, 1.0, -1.0])
mean = wf.Shallow(N.normal(size=(4, 3)), [1.0, -1.0, 1.0, -1.0], wf.scalings.MeanField(), "tanh")
older = wf.Shallow(N.normal(size=(4, 3)), [1.0, -1.0, 1.0, -1.0], wf.scalings.MeanField(hidden=1.0), "tanh")
p3 = wf.Shallow(N.normal(size=(4, 4)), [1.0, -1.0, 1.0, -1.0], wf.scalings.MeanField(), "relu", wf.embeddings.RandomFeatures(w))
hom = wf.Homogeneous(w)
two = wf.BiasedTwoLayer(N.normal(size=(4, 3)), N.normal(size=4), N.normal(size=4), 0.1 * N.normal(size=(4, 3)))
three = wf.BiasedThreeLayer(N.normal(size=(4, 3)), N.normal(size=4), N.normal(size=(4, 4)), N.normal(size=4), N.normal(size=4),
    0.1 * N.normal(size=(4, 3)), 0.1 * N.normal(size=(4, 4)))
start = wf.BiasedThreeLayer(three.first, three.first_bias, three.second, three.second_bias, three.output)
sep = wf.DepthSeparator(N.normal(size=(4, 3)), -abs(N.normal(size=4)), abs(N.normal(size=4)))
stack = wf.MeanFieldStack([(N.normal(size=(2, 4)), N.normal(size=(4, 3))), (N.normal(size=(1, 4)), N.normal(size=(4, 2)))])
deep = wf.Deep.init(0, wf.mlp(2, 4, "tanh", bias_std=0.1), 3, "mean-field")
data = wf.Dataset(x, y)
moves = 0.1 * N.normal(size=(4, 3)), 0.1 * N.normal(size=(4, 4))
xi, diagonal = np.array([1.0, -1.0, 1.0, 1.0]), np.array([1.0, -1.0, 1.0, -1.0])
law, key, times = L.radial.UniformBall(3), jax.random.key(0), np.array([0.5, 1.0])
state = L.radial.ReducedState(np.array(0.3), np.array([-0.5]), np.array([0.4]))
link = globals().get("link") or (lambda rho: rho[0] ** 2)  # one function: its programs are compiled once
online = L.OnlineEquations("erf", link, rate=0.5, order=6)
zipf, loss = wf.scalings.Zipf(0.5, 0.5), wf.losses.Huber()
"""

EXAMPLES = {
    # limits
    "limits.apply_kernel": "L.apply_kernel(L.kernels(wf.architecture.mlp()), x, x2, x2)",
    "limits.collapsed_mean_field": "L.collapsed_mean_field(gram, y, 'tanh', times)",
    "limits.cross_entropy": "L.cross_entropy(y2, abs(y2))",
    "limits.departure": "L.departure(zipf, 10)",
    "limits.field_theory": "L.field_theory(key, x, y, 1, steps=1, samples=32, repeats=2)",
    "limits.lazy_expansion": "L.lazy_expansion(x[:2], y[:2], times)",
    "limits.linear_field_theory": "L.linear_field_theory(x, y, steps=1)",
    "limits.ensemble": "L.ensemble(L.KernelPair(gram + np.eye(4), gram + 2 * np.eye(4)), y, times)",
    "limits.gram_variance": "L.gram_variance(x, zipf, 'relu', 10)",
    "limits.hidden_gram": "L.hidden_gram(x, 'relu', depth=2)",
    "limits.hermite_coefficients": "L.hermite_coefficients('relu', degree=3)",
    "limits.kappa": "L.kappa(x, 'relu')",
    "limits.kernels": "L.kernels(wf.architecture.mlp(depth=2)).both(x, x2)",
    "limits.largest_cosine": "L.largest_cosine(x)",
    "limits.lazy_kernel": "L.lazy_kernel(x, 'relu')",
    "limits.limit_nodes": "L.limit_nodes(zipf, 5)",
    "limits.stack_limit": "L.stack_limit(list(zip(stack.outers, stack.inners)), x, y, [0.5, "
    "1.0], 'tanh')",
    "limits.linearised": "L.linearised(gram, y, times, test_kernel=x2 @ x.T)",
    "limits.log_marginal_likelihood": "L.log_marginal_likelihood(gram, y, 0.3)",
    "limits.mean_field": "L.mean_field(gram, y, 'tanh', times, method='particles', particles=20, "
    "key=key)",
    "limits.mean_kernel_velocity": "L.mean_kernel_velocity(x, 'tanh', [0.5, 0.5], order=8)",
    "limits.mean_ntk": "L.mean_ntk(x, 'relu')",
    "limits.mean_weight_velocity": "L.mean_weight_velocity(x, 'relu', [0.5, 0.5])",
    "limits.monte_carlo_kernel": "L.monte_carlo_kernel(key, lambda k: wf.Shallow.init(k, "
    "features=3, width=4), x, samples=3)",
    "limits.nngp": "L.nngp(x, 'relu', x2)",
    "limits.node_limit": "L.node_limit(key, x, zipf, 'tanh', nodes=5)",
    "limits.order_parameter_band": "L.order_parameter_band(online, L.Overlaps([[0.3]], [[1.0]], "
    "[[1.0]], [1.0]), times, 100)",
    "limits.order_parameter_error": "L.order_parameter_error(online, L.Overlaps([[0.3]], "
    "[[1.0]], [[1.0]], [1.0]))",
    "limits.order_parameters": "L.order_parameters(online, L.Overlaps([[0.3]], [[1.0]], [[1.0]], "
    "[1.0]), times)",
    "limits.output_bound": "L.output_bound('tanh', 3)",
    "limits.plateau": "L.plateau([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 0.1])",
    "limits.output_flow": "L.output_flow(gram + np.eye(4), abs(y2), times)",
    "limits.posterior": "L.posterior(gram, y, ridge=0.3)",
    "limits.random_ntg": "L.random_ntg(key, x, zipf, 'relu', nodes=5)",
    "limits.recovery_samples": "L.recovery_samples(2, 100.0)",
    "limits.time_to_loss": "L.time_to_loss(gram + np.eye(4), y, 0.1)",
    "limits.regress": "L.regress(L.kernels(wf.architecture.mlp()), x, y, ridge=0.3)",
    "limits.sampled_gram": "L.sampled_gram(key, x, 'relu', samples=50)",
    "limits.self_correlation": "L.self_correlation(x, 'relu')",
    "limits.slope_gram": "L.slope_gram(gram, 'relu')",
    "limits.spectrum": "L.spectrum(gram)",
    "limits.train_node_limit": "L.train_node_limit(L.node_limit(key, x, zipf, 'tanh', nodes=5), "
    "y, rate=0.1, steps=3)",
    "limits.triple_correlation": "L.triple_correlation(x[0], x[1], x[2], 'tanh', order=8)",
    "limits.stochastic_order_parameters": "L.stochastic_order_parameters(key, online, "
    "L.Overlaps([[0.3]], [[1.0]], [[1.0]], [1.0]), times, 100, paths=2)",
    "limits.truncation_error": "L.truncation_error(x, zipf, 'relu', 5)",
    "limits.variance_constant": "L.variance_constant(x, 'relu')",
    "limits.weight_speed": "L.weight_speed(x, y, 'relu', [0.5, 0.5])",
    "limits.zipf_sum": "L.zipf_sum(0.5)",
    "limits.zipf_tail": "L.zipf_tail(0.5, 10)",
    "limits.hermite.gradient_weights": "H.gradient_weights(6)",
    "limits.hermite.coefficients": "H.coefficients(6)",
    "limits.hermite.coincidence_tail": "H.coincidence_tail(w, a, 4)",
    "limits.hermite.field": "H.field(x, w, a)",
    "limits.hermite.loss_tail": "H.loss_tail(w, a, 4)",
    "limits.hermite.order_field": "H.order_field(x, w, a, 4)",
    "limits.hermite.order_gradients": "H.order_gradients(w, a, (2, 4))",
    "limits.hermite.order_losses": "H.order_losses(w, a, (0, 2, 4))",
    "limits.hermite.population_gradient": "H.population_gradient(w, a)",
    "limits.hermite.population_loss": "H.population_loss(w, a)",
    "limits.hermite.target_moments": "H.target_moments(a)",
    "limits.radial.alpha_of_norm": "L.radial.alpha_of_norm(3, 0.5)",
    "limits.radial.c_gamma": "L.radial.c_gamma(3)",
    "limits.radial.reduced_field": "L.radial.reduced_field(law, state)",
    "limits.radial.reduced_flow": "L.radial.reduced_flow(law, 0.3, -0.5, 0.4, [0.5, 1.0])",
    "limits.radial.reduced_loss": "L.radial.reduced_loss(law, state)",
    "limits.radial.step_bound": "L.radial.step_bound(law, 0.3, -0.5, 0.4)",
    "limits.radial.time_to_loss": "L.radial.time_to_loss(law, 0.3, -0.5, 0.4, 0.03)",
    # observables
    "observables.basis_like": "obs.basis_like(w)",
    "observables.bilinear_bound": "obs.bilinear_bound(three, 10, 0.1, 0.1)",
    "observables.bilinear_rademacher": "obs.bilinear_rademacher(three, x, xi[None], 0.1, 0.1)",
    "observables.bilinear_sup": "obs.bilinear_sup(three, x, xi, 0.1, 0.1)",
    "observables.centred_alignment": "obs.centred_alignment(gram, gram**2)",
    "observables.coupled_main_part": "obs.coupled_main_part(three, x, *moves)",
    "observables.coupling_error": "obs.coupling_error(three, start, x)",
    "observables.cross_coefficients": "obs.cross_coefficients(three, x, obs.signs(three, x), "
    "*moves)",
    "observables.cross_variance": "obs.cross_variance(three, x, obs.signs(three, x), *moves)",
    "observables.direction_persistence": "obs.direction_persistence(np.eye(3), np.eye(3))",
    "observables.feature_kernels": "obs.feature_kernels(deep, x)",
    "observables.first_time": "obs.first_time(times, [False, True])",
    "observables.gap_bound_variant1": "obs.gap_bound_variant1(three, 10)",
    "observables.gap_bound_variant2": "obs.gap_bound_variant2(three, 10)",
    "observables.gradient_kernels": "obs.gradient_kernels(deep, x)",
    "observables.hessian_eigenvalues": "obs.hessian_eigenvalues(deep, data, 2)",
    "observables.ignored": "obs.ignored(obs.neuron_sets(w, a), w)",
    "observables.kernel_chain": "obs.kernel_chain(mean, x)",
    "observables.kernel_parts": "obs.kernel_parts(net, x)",
    "observables.kernel_velocity": "obs.kernel_velocity(net, x, y)",
    "observables.last_layer_features": "obs.last_layer_features(three, x)",
    "observables.last_layer_gram": "obs.last_layer_gram(three, x)",
    "observables.late_exponent": "obs.late_exponent([1.0, 2.0, 3.0], [1.0, 0.5, 0.2], 0.5)",
    "observables.lottery_scores": "obs.lottery_scores(w)",
    "observables.moment_decay_time": "obs.moment_decay_time(times, [[0.1, 0.1]] * 2, [0.1, 0.1], "
    "2)",
    "observables.moment_errors": "obs.moment_errors(hom, a, np.eye(3))",
    "observables.neuron_sets": "obs.neuron_sets(w, a).pot",
    "observables.path_integral": "obs.path_integral(times, [-1.0, -2.0])",
    "observables.posterior_masses": "obs.posterior_masses(w)",
    "observables.pseudo_outputs": "obs.pseudo_outputs(three, x, obs.signs(three, x))",
    "observables.rademacher_signs": "obs.rademacher_signs(key, 4, 2)",
    "observables.ranking_quality": "obs.ranking_quality([0.1, 0.4], [False, True])",
    "observables.row_ball_oracle": "obs.row_ball_oracle(w, 0.5)",
    "observables.row_ball_projection": "obs.row_ball_projection(w, 0.5)",
    "observables.row_norm": "obs.row_norm(w, 4.0)",
    "observables.safe_rate": "obs.safe_rate(net, data)",
    "observables.sign_changes": "obs.sign_changes(three, start, x)",
    "observables.signed_move": "obs.signed_move(three, *moves, diagonal).outputs(x)",
    "observables.signs": "obs.signs(three, x)",
    "observables.singletons": "obs.singletons(w)",
    "observables.smoothed_pair": "obs.smoothed_pair(three, x, *moves, *moves, diagonal, 0.1)",
    "observables.sphere_extremes": "obs.sphere_extremes(sep, starts=4, iterations=5)",
    "observables.stage_events": "obs.stage_events(times, [1.0, 0.1], [1.0, 0.1], [1.0, 0.5], a)",
    "observables.tangent_gram": "obs.tangent_gram(net, x, x2)",
    "observables.tangent_gram_parts": "obs.tangent_gram_parts(deep, x, x2)",
    "observables.tangent_products": "obs.tangent_products(deep, x)(y)",
    "observables.two_layer_bound": "obs.two_layer_bound(two, 10, 0.5)",
    "observables.typical_neurons": "obs.typical_neurons(w, a)",
    "observables.winning_threshold": "obs.winning_threshold(a, 1.0)",
    # data
    "data.axis_types": "wf.data.axis_types(key, 5, 3).inputs",
    "data.composite_of_sines": "wf.data.composite_of_sines(2).outputs(x)",
    "data.concept_data": "wf.data.concept_data(key, wf.data.composite_of_sines(2), samples=4, "
    "features=2).targets",
    "data.mixture_features": "wf.data.mixture_features(key, 20, 10, 4, 2)[0].inputs",
    "data.one_hot": "wf.data.one_hot(np.array([0, 1]))",
    "data.padded_sphere": "wf.data.padded_sphere(key, 4, 2)",
    "data.plain_concept": "wf.data.plain_concept([1.0], wf.data.smooth('sin'), [[1.0]], "
    "np.eye(3)[:1], wf.data.smooth('sin')).outputs(x)",
    "data.polynomial": "wf.data.polynomial((0.0, 1.0, 0.5))(x)",
    "data.prepare": "wf.data.prepare(data).data.inputs",
    "data.product_concept": "wf.data.product_concept(wf.data.smooth('sin'), "
    "wf.data.smooth('sin'), 2).outputs(x)",
    "data.quadratic_teacher": "wf.data.quadratic_teacher(key, samples=4, features=3).targets",
    "data.random_labels": "wf.data.random_labels(key, samples=4, features=3).targets",
    "data.smooth": "wf.data.smooth('sin')(x)",
    "data.sphere": "wf.data.sphere(key, 4, 3)",
    "data.sphere_sines": "wf.data.sphere_sines(key, samples=4, features=3).targets",
    "data.split": "wf.data.split(data, (0.5, 0.5))[0].inputs",
    "data.unit_padding": "wf.data.unit_padding(x)(x)",
    "data.waves": "wf.data.waves(key, samples=4).targets",
    # the rest
    "losses.loss_class": "wf.losses.loss_class(loss, y)",
    "embeddings.virtual_inputs": "wf.embeddings.virtual_inputs(gram)",
    "maps.abc_network": "wf.maps.abc_network(p3, wf.maps.ntk_exponents()).outputs(x)",
    "maps.as_xavier": "wf.maps.as_xavier(p3, 0.1)[0].outputs(x)",
    "maps.common_magnitude": "wf.maps.common_magnitude(mean)",
    "maps.maximal_update_exponents": "wf.maps.maximal_update_exponents()",
    "maps.ntk_as_mean_field": "wf.maps.ntk_as_mean_field(net, 0.1)[0].outputs(x)",
    "maps.ntk_exponents": "wf.maps.ntk_exponents()",
    "maps.older_as_mean_field": "wf.maps.older_as_mean_field(older, 0.1)[0].outputs(x)",
    "maps.older_mean_field_exponents": "wf.maps.older_mean_field_exponents()",
    "maps.ours_exponents": "wf.maps.ours_exponents()",
    "maps.unit_magnitude": "wf.maps.unit_magnitude(mean, 0.1)[0].outputs(x)",
    "maps.xavier_network": "wf.maps.xavier_network(p3, 0.1)[0].outputs(x)",
    "features": "wf.features(net, x)",
    "importance": "wf.importance(net)",
    "prune": "wf.prune(net, 2).outputs(x)",
    "pruning_curve": "wf.pruning_curve(net, x, y)",
    "rescaled": "wf.rescaled(deep, alpha=3.0, centred=True).outputs(x + 1)",
    "taylor": "wf.taylor(deep, 2).outputs(x)",
    "wrap": "wf.wrap(lambda p, v: jnp.tanh(v @ p), a).outputs(x)",
    "train": "wf.train(relu, data, wf.GradientDescent(0.1), steps=3).table.loss.values",
}

METHODS = {
    "data.check_data_assumptions": "wf.data.check_data_assumptions(x, y)",
    **{
        f"{m}.outputs": f"{m}.outputs(x)"
        for m in ("net", "deep", "hom", "two", "three", "sep", "stack")
    },
    **{f"{m}()": f"{m}(x[0])" for m in ("net", "deep", "hom", "two", "three", "sep", "stack")},
    **{
        f"{m}.embed": f"{m}.embed(x)"
        for m in ("net", "deep", "hom", "two", "three", "sep", "stack")
    },
    **{
        f"{m}.respond": f"{m}.respond({m}.embed(x))"
        for m in ("net", "deep", "hom", "two", "three", "sep", "stack")
    },
    **{
        f"{m}.pullback": f"[p(np.ones_like(f)) for f, p in [{m}.pullback({m}.embed(x))]]"
        for m in ("net", "deep", "hom", "two", "three", "sep", "stack")
    },
    "deep.preactivations": "deep.preactivations(x)",
    "net.preactivations": "net.preactivations(x)",
    "two.preactivations": "two.preactivations(x)",
    "three.preactivations": "three.preactivations(x)",
    "two.weights": "two.weights",
    "net.hidden": "net.hidden",
    "net.node_weights": "net.node_weights",
    "hom.norms": "hom.norms",
    "hom.neurons": "hom.neurons()",
    "sep.alpha": "sep.alpha",
    "sep.layer": "sep.layer(x)",
    "stack.features": "stack.features(x)",
    **{
        f"objective.{name}": f"data.objective(wf.losses.HalfSumSquares(), net).{call}"
        for name, call in (
            ("value", "value(net)"),
            ("gradient", "gradient(net)"),
            ("outputs", "outputs(net)"),
            ("batch", "batch(np.array([0, 1])).value(net)"),
        )
    },
    **{
        f"losses.{name}": f"(wf.losses.{name}()(y, y[::-1].copy()), "
        f"wf.losses.{name}().value_and_gradient(y, y[::-1].copy()))"
        for name in (
            "HalfSumSquares",
            "MeanSquares",
            "HalfMeanSquares",
            "Huber",
            "PseudoHuber",
            "LogCosh",
            "Logistic",
            "DeadZoneHuber",
        )
    },
    **{
        f"losses.{name}": f"wf.losses.{name}().value_and_gradient(y2, abs(y2))"
        for name in ("CrossEntropy", "ScaledCrossEntropy")
    },
    "embeddings.Quadratic": "(wf.embeddings.Quadratic().embed(x), "
    "wf.embeddings.Quadratic().gram(x), wf.embeddings.Quadratic()(x[0]))",
    "embeddings.RandomFeatures": "wf.embeddings.RandomFeatures(w).embed(x)",
    "embeddings.Function": "wf.embeddings.Function(lambda v: v**2)(x[0])",
    "scalings": "(zipf.node_scales(4), wf.scalings.NTK().node_scales(4), "
    "wf.scalings.MeanField().node_scales(4))",
    "activations": "[f(x) for act in (wf.activations.relu(), wf.activations.gelu()) for f in "
    "(act, act.derivative, act.second)]",
    "populations.MultiIndex": "wf.populations.MultiIndex('erf', x2).objective(None, "
    "net).gradient(net)",
    "populations.GaussianAbsTeacher": "wf.populations.GaussianAbsTeacher(a).objective(None, "
    "hom).gradient(hom)",
    "law.density": "(law.moments(np.array(0.5)), law.gain)",
    "own model": "Own(key).respond(x)",
    "states": "wf.train(net, data, obs.MaskAveraging(wf.GradientDescent(0.1)), steps=1).state.mean",
    "SmoothedSGD.finish": (
        "wf.SmoothedSGD(0.1, 3).finish(start, data, loss, key=2, candidates=2)[1:]"
    ),
}

NO_EXAMPLE = {
    **dict.fromkeys(
        ("observables.KernelChange", "observables.KernelDrift", "observables.KernelMovement"),
        "an old name of `KernelDistance`",
    ),
    "limits.reach_time": "the old name of `time_to_loss`",
    "limits.information_exponent": "a whole number",
    "limits.leap": "whole numbers",
    "observables.weak_recovery_time": "reads a table",
    "judge": "verdicts of Python numbers on a run",
    "save_figure": "draws a file",
    "sweep": "starts processes; its tables have their own tests",
    "coordinate_check": "trains six networks; returns NumPy arrays of its own",
    "limits.radial.reduced_stages": "NumPy numbers from the reduced flow, which has its example",
    "observables.descent_triple": "Monte Carlo over smoothed networks, seconds to compile; a "
    "module like `smoothed_pair`",
    "observables.network_sup": "an ascent of seconds; a Python number",
    "observables.sliding": "three hundred steps of a run; NumPy arrays of its own",
    "observables.smoothed_objective": "Monte Carlo over smoothed networks; see `smoothed_pair`",
    "observables.stability": "reads a table",
    "observables.two_layer_sup": "an ascent of seconds; a Python number",
    "limits.open_kernel": "reads a folder of NumPy arrays",
    "limits.write_kernel": "writes a folder of NumPy arrays",
    "data.cifar10_features": "reads a file",
    "data.mnist": "reads a file",
    "data.read_csv": "reads a file",
    "data.uci": "reads a file",
}
