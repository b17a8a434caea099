"""Certificates: the theorems evaluated on the data and network at hand. The module itself is
callable: `wf.certify(net, data)`.
"""

from .._core.callable_module import make_callable
from ..data.prepare import Prepared, prepare
from .build import certify
from .certificate import Certificate
from .checks import Check, check_dataset
from .grams import GramReport
from .laziness import Laziness, lazy_step
from .promises import Promise
from .registry import Case, Statement, on_case, register, statements

__all__ = [
    "Case",
    "Certificate",
    "Check",
    "GramReport",
    "Laziness",
    "Prepared",
    "Promise",
    "Statement",
    "certify",
    "check_dataset",
    "lazy_step",
    "on_case",
    "prepare",
    "register",
    "statements",
]

make_callable(__name__, certify)
