"""Read a candidate's source and refuse what a pure-Python answer has no use for.

A fast filter and a reward signal, not the security boundary: that is the sandbox. Deterministic and total: any text
gives a report. It never runs, imports or changes the candidate.
"""

from outpace.static_check.check import check
from outpace.static_check.rules import ALLOWED_MODULES, ARTICLE, DEFAULT, Rules, rules_for

__all__ = ["ALLOWED_MODULES", "ARTICLE", "DEFAULT", "Rules", "check", "rules_for"]
