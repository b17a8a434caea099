"""A small construction of every exported class that a user builds, beside the functions of
`example_calls`; new names come with one, or with the reason why not.
"""

# after the preamble of `example_calls`
PREAMBLE = """
import optax
P, arch, figures = wf.populations, wf.architecture, wf.figures
gd, chain = wf.GradientDescent(0.1), wf.mlp(1, 4)
mark = figures.HLine(1.0)
panel = figures.Panel("t", "x", "y", [mark])
"""

OBSERVABLES = [
    "Accuracy",
    "ActiveFraction",
    "ArrayMovement",
    "BasisNeurons",
    "CouplingError",
    "CoveredDirections",
    "DirectionMasses",
    "DisplacedFraction",
    "EffectiveRank",
    "FeatureAlignment",
    "FeatureKernelDrift",
    "FeatureMovement",
    "FrozenNeurons",
    "GradientKernelDrift",
    "IncrementNorm",
    "KernelAlignment",
    "KernelDistance",
    "KernelMaxEigenvalue",
    "KernelMinEigenvalue",
    "KernelSpectrum",
    "KernelTrace",
    "LayerFeatureMovement",
    "LeastActiveFraction",
    "LinearisationGap",
    "Loss",
    "LossTail",
    "MomentError",
    "OrderLosses",
    "Outputs",
    "PointMovement",
    "Sharpness",
    "SignChange",
]

CONSTRUCTIONS = {
    "Shallow": "wf.Shallow(w, [1.0, -1.0, 1.0, -1.0])",
    "Homogeneous": "wf.Homogeneous(w)",
    "MeanFieldStack": "wf.MeanFieldStack([(y[None], w), (y[None], y[:, None])])",
    "BiasedTwoLayer": "wf.BiasedTwoLayer(w, y, y)",
    "BiasedThreeLayer": "wf.BiasedThreeLayer(w, y, x @ x2.T, y, y)",
    "DepthSeparator": "wf.DepthSeparator(w, -abs(y), abs(y))",
    "Deep": "wf.Deep(chain, 3, [np.ones((3, 4)), np.ones((4, 1))])",
    "Dataset": "wf.Dataset(x, y)",
    "GradientDescent": "wf.GradientDescent(0.1)",
    "GradientFlow": "wf.GradientFlow()",
    "SGD": "wf.SGD(0.1, batch=2)",
    "Optax": "wf.Optax(optax.adam(0.1))",
    "OnlineSGD": "wf.OnlineSGD(0.1)",
    "Langevin": "wf.Langevin(0.1, 0.01)",
    "TruncatedDescent": "wf.TruncatedDescent(0.1, 0.1)",
    "LossBelow": "wf.LossBelow(0.1)",
    "ClippedFlow": "wf.ClippedFlow(0.1)",
    "SmoothedSGD": "wf.SmoothedSGD(0.1, 3)",
    "BestIterate": "wf.BestIterate(gd)",
    "ReplayedNoise": "wf.ReplayedNoise(np.array([0, 1]))",
    "Logarithmic": "wf.Logarithmic(10)",
    "Claim": "wf.Claim('text', value=1.0, at_least=0.5)",
    "Session": "wf.Session()",
    "architecture.Dense": "arch.Dense(4)",
    "architecture.Conv": "arch.Conv(4, (3, 3))",
    "architecture.Activate": "arch.Activate('relu')",
    "architecture.AveragePool": "arch.AveragePool((2, 2))",
    "architecture.SumPool": "arch.SumPool((2, 2))",
    "architecture.LayerNorm": "arch.LayerNorm()",
    "architecture.Residual": "arch.Residual(arch.Dense(4))",
    "architecture.SelfAttention": "arch.SelfAttention(4)",
    "architecture.Chain": "arch.Chain(arch.Dense(4))",
    "parametrisations.Parametrisation": "wf.parametrisations.Parametrisation('own', (0, 0, 0), "
    "(0.5, 0, 0), (0.5, 0, 0))",
    "scalings.Zipf": "wf.scalings.Zipf(0.5, 0.7)",
    "scalings.MeanField": "wf.scalings.MeanField(0.5)",
    "scalings.Weights": "wf.scalings.Weights([0.5, 0.3, 0.2])",
    "scalings.ABC": "wf.scalings.ABC((0.0, 0.5), (0.0, 0.0), 0.0)",
    "populations.GaussianAbsTeacher": "P.GaussianAbsTeacher(a)",
    "populations.MultiIndex": "P.MultiIndex('erf', x2)",
    "populations.Radial": "P.Radial(law)",
    "embeddings.RandomFeatures": "wf.embeddings.RandomFeatures(w)",
    "embeddings.DeepRandomFeatures": "wf.embeddings.DeepRandomFeatures(w)",
    "embeddings.Function": "wf.embeddings.Function(lambda v: v**2)",
    **{f"observables.{name}": f"obs.{name}()" for name in OBSERVABLES},
    "observables.KernelPart": "obs.KernelPart(0.5)",
    "observables.KernelPartDistance": "obs.KernelPartDistance(0.5)",
    "observables.KernelPartMinEigenvalue": "obs.KernelPartMinEigenvalue(0.5)",
    "observables.FeatureScatter": "obs.FeatureScatter(x[0], x[1])",
    "observables.OutputsAt": "obs.OutputsAt(x)",
    "observables.PrunedRisk": "obs.PrunedRisk(x, y, [1])",
    "observables.MaskAveraging": "obs.MaskAveraging(gd)",
    "figures.Line": "figures.Line([0.0, 1.0], [0.0, 1.0])",
    "figures.Points": "figures.Points([0.0, 1.0], [0.0, 1.0])",
    "figures.HLine": "figures.HLine(1.0)",
    "figures.VLine": "figures.VLine(1.0)",
    "figures.Bars": "figures.Bars(['a'], [1.0])",
    "figures.Heatmap": "figures.Heatmap([0.0, 1.0], [0.0], [[1.0, 2.0]])",
    "figures.Panel": "figures.Panel('t', 'x', 'y', [mark])",
    "figures.FigureSpec": "figures.FigureSpec('t', [panel])",
}

FIXED = "a name, a label and axes alone, which every observable checks alike"
RETURNED = "what wideflow returns"
INTERFACE = "an interface, of which others are made"
NO_CONSTRUCTION = {
    **dict.fromkeys(
        (
            f"observables.{name}"
            for name in [
                "DeadFraction",
                "DecayRate",
                "Diversity",
                "FeaturePair",
                "Flips",
                "GeneralisationError",
                "GradientChange",
                "KernelSpeed",
                "LargestCosine",
                "LargestMovement",
                "LargestNeuron",
                "LossSlope",
                "NeuronPlaces",
                "NeuronShares",
                "NeuronSizes",
                "ParameterMovement",
                "PreactivationSpeed",
                "Risk",
                "SmallestPreactivation",
                "StudentOverlap",
                "SumLoss",
                "TeacherOverlap",
                "TestLoss",
                "TestRisk",
                "WeightMovement",
                "WeightedResidual",
            ]
        ),
        FIXED,
    ),
    **dict.fromkeys(
        ("Outcome", "Run", "Snapshot", "Status", "Verdict", "scalings.ScalingVerdict")
        + tuple(
            f"observables.{name}"
            for name in [
                "DescentTriple",
                "Extremes",
                "KernelChain",
                "KernelParts",
                "NeuronSets",
                "Signs",
                "Sliding",
            ]
        ),
        RETURNED,
    ),
    "DrawnNoise": "takes nothing",
    "architecture.Flatten": "takes nothing",
    "architecture.GlobalAveragePool": "takes nothing",
    "embeddings.Identity": "takes nothing",
    "embeddings.Quadratic": "takes nothing",
    "scalings.NTK": "takes nothing",
    "Experiment": "checked where it is registered, by the contract of all experiments",
    "KernelRegressor": "scikit-learn's rule: checked by `fit`",
    "WideClassifier": "scikit-learn's rule: checked by `fit`",
    "WideRegressor": "scikit-learn's rule: checked by `fit`",
}
