"""Certificates: the theorems evaluated on the data and network at hand."""

from ..data.prepare import Prepared as Prepared, prepare as prepare
from .build import certify as certify
from .certificate import Certificate as Certificate
from .checks import Check as Check, check_dataset as check_dataset
from .grams import GramReport as GramReport
from .laziness import Laziness as Laziness, lazy_step as lazy_step
from .promises import Promise as Promise
from .registry import (
    Case as Case,
    Statement as Statement,
    register as register,
    statements as statements,
)
