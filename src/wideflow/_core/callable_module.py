"""A module that can be called, for names that are both a function users call and a module they
import.
"""

import inspect
import sys
import types
from collections.abc import Callable


def make_callable(name: str, function: Callable) -> None:
    """Makes the module `name` callable as `function`: `wf.certify(...)` works, and
    `import wideflow.certify` is a module.
    """

    class CallableModule(types.ModuleType):
        __call__ = staticmethod(function)
        __signature__ = inspect.signature(function)

    sys.modules[name].__class__ = CallableModule
