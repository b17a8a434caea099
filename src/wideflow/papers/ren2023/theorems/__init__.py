"""Ren, Zhou, Ge: depth separation with multilayer mean-field networks."""

from .convergence import Lemma43 as Lemma43, StepSize as StepSize, TimeToLoss as TimeToLoss
from .flow_identities import LemmaD3 as LemmaD3, LemmaD4 as LemmaD4, LemmaD5 as LemmaD5
from .layers import LemmaC11 as LemmaC11, LemmaC13 as LemmaC13, LemmaC14 as LemmaC14
from .projections import Lemma41 as Lemma41
from .stage_one import (
    Lemma42 as Lemma42,
    LemmaC5 as LemmaC5,
    LemmaC7 as LemmaC7,
    LemmaC10 as LemmaC10,
    LemmaC17 as LemmaC17,
)
from .stage_two import (
    LemmaD11 as LemmaD11,
    LemmaD12 as LemmaD12,
    LemmaD14 as LemmaD14,
    LemmaD15 as LemmaD15,
    LemmaD16 as LemmaD16,
    LemmaD18 as LemmaD18,
    fixed_point as fixed_point,
)
from .symmetry import (
    InfiniteWidthSymmetry as InfiniteWidthSymmetry,
    Lemma31 as Lemma31,
    sup_radius_density as sup_radius_density,
)
