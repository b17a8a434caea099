"""Data: what networks are trained on."""

from ..papers.allenzhu2018.concept_data import (
    UnitPadding as UnitPadding,
    composite_of_sines as composite_of_sines,
    concept_data as concept_data,
    padded_sphere as padded_sphere,
    product_concept as product_concept,
    unit_padding as unit_padding,
)
from ..papers.allenzhu2018.laws.concepts import (
    ThreeLayerConcept as ThreeLayerConcept,
    TwoLayerConcept as TwoLayerConcept,
    plain_concept as plain_concept,
)
from ..papers.allenzhu2018.laws.power_series import (
    PowerSeries as PowerSeries,
    polynomial as polynomial,
    smooth as smooth,
)
from .assumptions import (
    DataAssumptions as DataAssumptions,
    check_data_assumptions as check_data_assumptions,
)
from .dataset import Dataset as Dataset, one_hot as one_hot
from .feature_tasks import axis_types as axis_types, quadratic_teacher as quadratic_teacher
from .features import cifar10_features as cifar10_features, mixture_features as mixture_features
from .files import mnist as mnist, split as split, uci as uci
from .prepare import Prepared as Prepared, prepare as prepare
from .synthetic import (
    random_labels as random_labels,
    sphere as sphere,
    sphere_sines as sphere_sines,
    waves as waves,
)
from .tables import read_csv as read_csv
