"""The result in sentences, drawn from the intervals: what changed clearly is said, and so is what did not. Pure."""

from outpace.evaluate import Comparison, Difference, Unit
from outpace.report.numbers import show, show_change, show_change_interval
from outpace.report.runs import RunData
from outpace.report.tables import split_name

_SUBJECTS = (("pass@1", "correct answers"), ("speedup_median", "the median speed-up of correct answers"))


def headlines(run: RunData) -> list[str]:
    """One sentence per split and subject; empty without a comparison."""
    comparison = run.comparison
    if comparison is None:
        return []
    return [
        f"On {_tasks(split)}, {_sentence(subject, rows[name], comparison)}"
        for split, rows in comparison.by_split.items()
        for name, subject in _SUBJECTS
        if rows[name].difference is not None
    ]


def change_in_words(row: Difference) -> str:
    """`+36.9 points` or `+1.84x`."""
    return show_change(row) + (" points" if row.after.unit is Unit.SHARE and row.difference is not None else "")


def _sentence(subject: str, row: Difference, comparison: Comparison) -> str:
    verb = {"better": "rose", "worse": "fell"}.get(row.judgement, "went")
    values = f"from {show(row.before.value, row.before.unit)} to {show(row.after.value, row.after.unit)}"
    if row.difference == 0:
        return f"{subject} stayed at {show(row.after.value, row.after.unit)}."
    interval = show_change_interval(row)
    if not interval:
        return f"{subject} went {values}; too few samples for an interval."
    aside = f"{change_in_words(row)}, {comparison.confidence * 100:g} % interval {interval}"
    if row.is_clear:
        return f"{subject} {verb} {values} ({aside})."
    return f"{subject} went {values}, which is within the noise ({aside})."


def _tasks(split: str) -> str:
    return f"{split_name(split)} tasks"
