"""li2020: learning beyond the tangent kernel, statement by statement."""

from .concentration import (
    FiniteWidthGradient as FiniteWidthGradient,
    FiniteWidthLoss as FiniteWidthLoss,
)
from .expansion import HermiteExpansion as HermiteExpansion, OrderGradients as OrderGradients
from .kernels import KernelLowerBound as KernelLowerBound
from .main import (
    FiniteConvergence as FiniteConvergence,
    InfiniteWidthConvergence as InfiniteWidthConvergence,
)
from .propagation import (
    ErrorForms as ErrorForms,
    ErrorPropagation as ErrorPropagation,
    SixteenTerms as SixteenTerms,
)
from .stage_one import (
    CoordinateScaling as CoordinateScaling,
    Lottery as Lottery,
    MomentDecay as MomentDecay,
    SecondMomentRange as SecondMomentRange,
)
from .stage_two import (
    LateDecay as LateDecay,
    RateEquations as RateEquations,
    WarmStart as WarmStart,
)
from .symmetry import SymmetricGradient as SymmetricGradient, SymmetryPreserved as SymmetryPreserved
