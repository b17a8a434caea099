"""Counts in messages."""


def counted(count: int, noun: str) -> str:
    """A number and its noun, which has an s in the plural.

    >>> counted(1, "run"), counted(3, "run")
    ('1 run', '3 runs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
