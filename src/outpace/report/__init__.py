"""Reports: a run folder turned into tables, Markdown and one self-contained HTML page.

Reads what runs left behind; never samples, grades or trains. Text that a model wrote is shown, never interpreted.
"""

from outpace.report.tables import render_comparison, render_evaluation
from outpace.report.watch import watch
from outpace.report.writing import write

__all__ = ["render_comparison", "render_evaluation", "watch", "write"]
