"""Programming problems: what is asked, how an answer is checked, what its speed is measured against.

`load(spec)` and `get(task_id)` find tasks, `task` defines one in a Python file, `check(task, sandbox)` says what is
wrong with one, `canonical_completion(task)` is its reference as an answer. Running an answer is not done here.
"""

from outpace.tasks.catalogue import get, load
from outpace.tasks.check import Finding, check
from outpace.tasks.compare import close, custom, exact, unordered
from outpace.tasks.define import task
from outpace.tasks.prompt import canonical_completion

__all__ = [
    "Finding",
    "canonical_completion",
    "check",
    "close",
    "custom",
    "exact",
    "get",
    "load",
    "task",
    "unordered",
]
