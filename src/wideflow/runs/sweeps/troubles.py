"""Notes on runs that raised: kept until the run succeeds, so that the status of a sweep can show
them.
"""

import contextlib
import json
import pathlib

from ..files import write_whole


class Troubles:
    """One small file a failed run, in `folder`/troubles."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder / "troubles"

    def note(self, address: str, sentence: str) -> None:
        """Keeps the note where it can; a full disk must not hide the trouble itself."""
        with contextlib.suppress(OSError):
            write_whole(
                self.folder / f"{address}.json", json.dumps({"sentence": sentence}).encode()
            )

    def clear(self, address: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / f"{address}.json").unlink(missing_ok=True)

    def all(self) -> dict[str, str]:
        sentences = {}
        for path in sorted(self.folder.glob("*.json")):
            try:
                sentences[path.stem] = str(json.loads(path.read_text())["sentence"])
            except (OSError, ValueError, KeyError, TypeError):
                sentences[path.stem] = f"it failed; the note in {path} cannot be read."
        return sentences
