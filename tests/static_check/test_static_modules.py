"""The allow-list and the sandbox agree: what may be imported can be imported."""

from outpace import tasks
from outpace.grade import Grader, GradeSettings
from outpace.schema import Outcome
from outpace.static_check import ALLOWED_MODULES


def test_every_allowed_module_can_be_imported_in_a_child() -> None:
    names = ", ".join(sorted(ALLOWED_MODULES - {"__future__"}))
    completion = f"```python\nimport {names}\ndef prefix_sums(xs):\n    return list(itertools.accumulate(xs))\n```\n"
    with Grader(workers=1, settings=GradeSettings(measure_speed=False)) as grader:
        verdict = grader.grade(completion, tasks.get("sequences/prefix_sums"))
    assert (verdict.outcome, verdict.detail) == (Outcome.CORRECT, "")
