"""A value that is carried along to be told, and takes no part in comparison."""


class Told:
    """Equal to every other `Told`: programs compiled for one label serve all others.

    A shallow network's numbers are fixed by its arrays; the scaling it was built from is carried for
    the reader. Wrapped like this it neither forces a new compilation nor keeps networks of different
    scalings from running together.
    """

    def __init__(self, value):
        self.value = value

    def __eq__(self, other) -> bool:
        return isinstance(other, Told)

    def __hash__(self) -> int:
        return hash(Told)

    def __repr__(self) -> str:
        return repr(self.value)
