"""Every failure is one sentence and an exit code; the traceback is there with `--debug`."""

import contextlib
import errno
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


class CommandError(Exception):
    """A sentence for the user and the exit code that goes with it."""

    def __init__(self, sentence: str, code: int = FAILED):
        self.sentence, self.code = sentence, code


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """A `ValueError` raised inside the block is a usage error: exit code 2."""
    try:
        yield
    except ValueError as error:
        raise CommandError(str(error), USAGE) from error


def guarded(call: Callable[[], int], words: Sequence[str]) -> int:
    """Runs `call`; turns whatever it raises into a sentence on stderr and an exit code."""
    try:
        return call()
    except KeyboardInterrupt as error:
        return _say("interrupted.", INTERRUPTED, error, words)
    except CommandError as error:
        return _say(error.sentence, error.code, error, words)
    except OSError as error:
        return _say(sentence_of(error), FAILED, error, words)
    except Exception as error:
        return _say(
            f"{sentence_of(error)} Run it again with --debug for the traceback.",
            FAILED,
            error,
            words,
        )


def sentence_of(error: BaseException) -> str:
    """What went wrong, in one sentence that says what can be done where that is known."""
    if isinstance(error, OSError):
        where = f" {error.filename!r}" if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return (
                f"the disk is full: nothing could be written to{where or ' it'}. Free some space "
                "and run the same command again; checkpoints are not lost."
            )
        if error.errno in (
            errno.EACCES,
            errno.ENOENT,
            errno.EPERM,
            errno.EROFS,
            errno.ENOTDIR,
            errno.EEXIST,
        ):
            return (
                f"cannot write to{where}: {(error.strerror or str(error)).lower()}. Choose another "
                "folder with --out."
            )
        return f"{error.strerror or error}{':' if where else ''}{where}."
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"


def _say(sentence: str, code: int, error: BaseException, words: Sequence[str]) -> int:
    if "--debug" in words:
        traceback.print_exception(error)
    print(f"wideflow: {sentence}", file=sys.stderr)
    return code
