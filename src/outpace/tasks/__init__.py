"""Programming problems: what is asked, how an answer is checked, what its speed is measured against.

`load(spec)` and `get(task_id)` find tasks, `task` defines one in a Python file, `check(task)` says what is wrong
with one. Running an answer is not done here.
"""

from outpace.tasks.catalogue import get, load
from outpace.tasks.compare import close, custom, exact, unordered
from outpace.tasks.define import task

__all__ = ["close", "custom", "exact", "get", "load", "task", "unordered"]
