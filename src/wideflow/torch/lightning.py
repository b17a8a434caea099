"""A Lightning callback around `Watch`, which works with `lightning`, with `pytorch_lightning`, and
with neither installed.
"""

import sys
from typing import Any

from .._core.errors import check_count
from .network import evaluating
from .watch import Watch

LIBRARIES = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(inputs, targets=None, *, every: int = 100, **options):
    """A callback that watches the trained module and logs its scalars with the trainer's loggers.

    Records are taken in evaluation mode every `every` steps, the first one before training;
    `callback.watch` is the `Watch`. The callback is of Lightning's own class where Lightning was
    imported, else a plain object with the same methods.

    Args:
        inputs, targets, options: as in `Watch`; arrays and tensors are moved to the module's
            device.
        every: steps between records.
    """
    check_count("every", every)
    base: Any = next(
        (sys.modules[name].Callback for name in LIBRARIES if name in sys.modules), object
    )

    class LightningWatch(base):
        """See `wideflow.torch.lightning_callback`."""

        watch: Watch | None = None

        def on_train_start(self, trainer, module) -> None:
            with evaluating(module):
                self.watch = Watch(
                    module, _moved(inputs, module), _moved(targets, module), **options
                )
            self._record(trainer, module)

        def on_train_batch_end(self, trainer, module, *_, **__) -> None:
            assert self.watch is not None  # since the training started
            if trainer.global_step % every == 0 and trainer.global_step > self.watch.steps[-1][0]:
                self._record(trainer, module)

        def _record(self, trainer, module) -> None:
            assert self.watch is not None
            with evaluating(module):
                scalars = self.watch.record(trainer.global_step)
            for logger in getattr(trainer, "loggers", ()):
                if scalars:
                    logger.log_metrics(scalars, step=trainer.global_step)

    return LightningWatch()


def _moved(value, module):
    """To the device of the module's first parameter."""
    device = next(module.parameters()).device
    if isinstance(value, tuple):
        return tuple(_moved(part, module) for part in value)
    return value.to(device) if hasattr(value, "to") else value
