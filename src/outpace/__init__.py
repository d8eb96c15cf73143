"""outpace: train code language models to write programs that are right, safe and fast, by running what they write.

The names below are loaded when they are first used, so that `import outpace` stays instant and never imports torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from outpace.version import __version__

if TYPE_CHECKING:
    from outpace.grade import Grader as Grader
    from outpace.grade import GradeSettings as GradeSettings
    from outpace.schema import Outcome as Outcome
    from outpace.schema import Sample as Sample
    from outpace.schema import Task as Task
    from outpace.schema import Verdict as Verdict

_HOME = {
    "GradeSettings": "outpace.grade",
    "Grader": "outpace.grade",
    "Outcome": "outpace.schema",
    "Sample": "outpace.schema",
    "Task": "outpace.schema",
    "Verdict": "outpace.schema",
}
__all__ = ["GradeSettings", "Grader", "Outcome", "Sample", "Task", "Verdict", "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'outpace' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
