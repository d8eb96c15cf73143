"""One completion -> one verdict: the only place that knows the order of the stages."""

from outpace.grade.grader import Grader
from outpace.grade.group import GroupInFlight
from outpace.grade.pipeline import Submission
from outpace.grade.settings import GradeSettings

__all__ = ["GradeSettings", "Grader", "GroupInFlight", "Submission"]
