"""One MLIR context for all programs of a process, in tests and in the processes that they start.

A kernel of notebooks runs this file first (`PYTHONSTARTUP`).
"""


def lower_in_one_context():
    """One MLIR context for the programs that this process lowers.

    JAX makes one for each program and keeps it with the program, and making the next takes longer
    the more there are: a small program took 17 ms at first and 30 ms after three thousand, with one
    context 13 ms throughout. A program lowered in the midst of another's lowering gets its own:
    what is built in a context goes where that other one is being written. The function is JAX's
    own; where a later JAX has it no more, tests are only slower.
    """
    from jax._src.interpreters import mlir

    if not hasattr(mlir, "make_ir_context"):
        return
    fresh = mlir.make_ir_context
    shared = fresh()

    def context():
        try:
            current = mlir.ir.Context.current
        except ValueError:  # how some versions say that nothing is being written
            current = None
        return shared if current is None else fresh()

    mlir.make_ir_context = context


if __name__ == "__main__":
    lower_in_one_context()
