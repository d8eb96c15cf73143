"""Opinions kept on disk: one small JSON file for each question, written whole or not at all.

Safe for several processes: two that ask the same question write the same file. It never shrinks by itself.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from outpace.errors import RewardError
from outpace.reward.judge.verdict import Opinion


class OpinionCache:
    """A folder of opinions; raises RewardError when it cannot be made."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).expanduser()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RewardError(f"The judge's cache folder {self._folder} cannot be made ({error.strerror}).") from error

    def get(self, key: str) -> Opinion | None:
        """The opinion kept under the key; None when there is none or its file is damaged."""
        try:
            kept = json.loads(self._path(key).read_text(encoding="utf-8"))
            return Opinion(int(kept["score"]), str(kept["reason"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, opinion: Opinion) -> None:
        """Keep an opinion; a full disk is not an error, the question will be asked again."""
        path = self._path(key)
        try:
            path.parent.mkdir(exist_ok=True)
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
                json.dump({"score": opinion.score, "reason": opinion.reason}, file)
            Path(file.name).replace(path)
        except OSError:
            return

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"


def key_of(**what: Any) -> str:
    """A key that is the same for the same question to the same judge."""
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
