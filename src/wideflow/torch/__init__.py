"""For PyTorch users: record a training loop, check the coordinates of a module, convert a module to
wideflow.

`wf.probe` and `wf.coordinate_check` accept modules; this folder contains what they need, and the
tools for your own training loop. PyTorch is imported when one of these names is first used.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from .conversion import from_torch as from_torch
    from .lightning import lightning_callback as lightning_callback
    from .watch import Watch as Watch

_NAMES = {"Watch": "watch", "from_torch": "conversion", "lightning_callback": "lightning"}

__all__ = ["Watch", "from_torch", "lightning_callback"]


def __getattr__(name: str):
    if name not in _NAMES:
        raise AttributeError(f"module 'wideflow.torch' has no attribute {name!r}")
    try:
        module = importlib.import_module(f".{_NAMES[name]}", __name__)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            f"`wideflow.torch.{name}` needs PyTorch, which is not installed: pip install "
            "'wideflow[torch]'.",
            name="torch",
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
