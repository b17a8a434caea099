"""Which programs JAX compiles, by name, for tests that ask for no more than are needed."""

import contextlib
import logging
import re

import jax


@contextlib.contextmanager
def compilations():
    """A list that holds, after the block, the name of every program that was compiled inside:
    `_end` for `jit(_end)`.
    """
    names: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: names.extend(
        re.findall(r"^Compiling jit\((\w+)\)", record.getMessage())
    )
    logger = logging.getLogger("jax")
    logger.addHandler(handler)
    try:
        with jax.log_compiles():
            yield names
    finally:
        logger.removeHandler(handler)
