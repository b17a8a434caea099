"""Phase planes: which regime, width and scaling are best on given data. The module itself is
callable: `wf.phase(data)`.
"""

from .._core.callable_module import make_callable
from .axes import Axis, parse_axis
from .network import Network, Training
from .phase import Phase, phase

__all__ = ["Axis", "Network", "Phase", "Training", "parse_axis", "phase"]

make_callable(__name__, phase)
