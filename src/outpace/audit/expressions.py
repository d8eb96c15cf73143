"""Values of case files that are given as Python expressions, computed in a sandbox child like any candidate.

Expressions come from a file that somebody else wrote, so they are never evaluated in this process.
"""

import math
from typing import Any

from outpace.errors import ConfigError
from outpace.grade import Grader
from outpace.schema import Limits, Sandbox

_WORDS = {"inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "nan": math.nan, "infinity": math.inf}
_LIMITS = Limits(wall_s=20.0, cpu_s=10.0, import_cpu_s=2.0)


def evaluate(grader: Grader, expression: str) -> Any:
    """The value of one expression; raises ConfigError when it has none."""
    value, problem = grader.pool.submit(_evaluate_in_child, expression).result()
    if problem is not None:
        raise ConfigError(f"the expression {expression[:60]!r} in the case file cannot be evaluated: {problem}")
    return value


def _evaluate_in_child(sandbox: Sandbox, expression: str) -> tuple[Any, str | None]:
    """Runs in a scoring process; the second is None when the first is the value."""
    source = f"def value():\n    return (\n{expression}\n)\n"
    instance = sandbox.open(source, "value", _LIMITS)
    try:
        failure = instance.load_failure
        if failure is None:
            result = instance.call(())
            failure = result.failure
            if failure is None:
                return result.value, None
        return None, f"{failure.reason} {failure.detail.strip()[-200:]}".strip()
    finally:
        instance.close()


def read_value(grader: Grader, value: Any) -> Any:
    """A value of a test: `"inf"` and `"nan"` are floats, other text an expression, lists are read entry by entry."""
    if isinstance(value, str):
        word = _WORDS.get(value.strip().lower())
        return word if word is not None else evaluate(grader, value)
    if isinstance(value, list):
        return [read_value(grader, entry) for entry in value]
    return value
