"""Tables for the terminal: before beside after, and one evaluation alone."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from outpace.evaluate import Comparison, Difference, Evaluation, Measure
from outpace.report.numbers import show, show_change, show_change_interval, show_interval

HEADLINES = (
    "syntax",
    "compliance",
    "pass@",
    "faster_1x",
    "faster_1.5x",
    "faster_2x",
    "speedup_median",
    "speedup_geometric_mean",
    "distinct_correct",
    "tokens",
    "cut_off",
)
"""What a table shows unless asked for everything; `pass@` stands for every k."""

_WIDE = 110
_JUDGEMENTS = {"better": ("▲ better", "green"), "worse": ("▼ worse", "red"), "changed": ("● changed", "cyan")}


def is_headline(name: str) -> bool:
    """Whether the measure is one of `HEADLINES`."""
    return name in HEADLINES or name.startswith("pass@")


def render_comparison(
    comparison: Comparison, *, width: int = 80, everything: bool = False, per_task: bool = False
) -> Table:
    """Before and after side by side, for each split, with the interval of each difference.

    Args:
        comparison: what to show.
        width: of the terminal; from 110 on, each side shows its own interval too.
        everything: all measures instead of the headlines.
        per_task: correctness and speed of each task as well.
    """
    is_wide = width >= _WIDE
    table = _table(f"{comparison.before_label} → {comparison.after_label}", gap=2 if is_wide else 1)
    sides = [comparison.before_label, comparison.after_label]
    for column in (*([sides[0], "", sides[1], ""] if is_wide else sides), "change"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    table.add_column(f"{comparison.confidence * 100:g} % interval", no_wrap=True)
    table.add_column("", no_wrap=True)
    for split, rows in comparison.by_split.items():
        first = next(iter(rows.values()))
        _section(table, f"{split_name(split)}, {_counts(first.before)}")
        for name, row in rows.items():
            if everything or (is_headline(name) and not (_is_untimed(row.before) and _is_untimed(row.after))):
                table.add_row(*_comparison_cells(row, is_wide))
    if per_task:
        for task, rows in comparison.by_task.items():
            _section(table, task)
            for name in ("pass@1", "speedup_median"):
                table.add_row(*_comparison_cells(rows[name], is_wide))
    if comparison.notes:
        table.caption = Text("\n".join(comparison.notes))
    return table


def render_evaluation(evaluation: Evaluation, *, everything: bool = False, per_task: bool = False) -> Table:
    """One evaluation's measures with their intervals, for each split."""
    table = _table(f"{evaluation.label}, with {evaluation.settings.confidence * 100:g} % intervals")
    for column in ("value", "interval", "samples"):
        table.add_column(column, justify="left" if column == "interval" else "right", no_wrap=True)
    for split, measures in evaluation.by_split.items():
        _section(table, f"{split_name(split)}, {_counts(next(iter(measures.values())))}")
        for measure in measures.values():
            if everything or (is_headline(measure.name) and not _is_untimed(measure)):
                table.add_row(*_measure_cells(measure))
    if per_task:
        for task, measures in evaluation.by_task.items():
            _section(table, task)
            for name in ("pass@1", "speedup_median"):
                table.add_row(*_measure_cells(measures[name]))
    if notes := evaluation_notes(evaluation):
        table.caption = Text("\n".join(notes))
    return table


def evaluation_notes(evaluation: Evaluation) -> Sequence[str]:
    """What a reader must know besides the measures."""
    notes = []
    if evaluation.infra_failures:
        notes.append(f"{evaluation.infra_failures} samples could not be graded by us and count for nothing")
    if evaluation.untrusted_timings:
        notes.append(
            f"the timing of {evaluation.untrusted_timings} correct samples is not trusted and counts for no speed"
        )
    return notes


def _table(title: str, gap: int = 2) -> Table:
    table = Table(title=Text(title), box=None, pad_edge=False, padding=(0, gap, 0, 0))
    table.title_justify = table.caption_justify = "left"
    table.add_column("", no_wrap=True)
    return table


def _section(table: Table, title: str) -> None:
    if table.row_count:
        table.add_row()
    table.add_row(Text(title, style="bold"))


def split_name(split: str) -> str:
    """What a split is called in a report."""
    return {"heldout": "held-out"}.get(split, split)


def _counts(measure: Measure) -> str:
    return f"{measure.tasks} {'task' if measure.tasks == 1 else 'tasks'}, {measure.samples} samples"


def _is_untimed(measure: Measure) -> bool:
    """A share of fast programs among tasks none of which is timed, such as HumanEval's: a row that says nothing."""
    return measure.name.startswith("faster") and measure.value is None


def _measure_cells(measure: Measure) -> list[Text | str]:
    interval = show_interval(measure.low, measure.high, measure.unit)
    return [Text(measure.label), show(measure.value, measure.unit), Text(interval, style="dim"), str(measure.samples)]


def _comparison_cells(row: Difference, is_wide: bool) -> list[Text | str]:
    mark, style = _JUDGEMENTS.get(row.judgement, ("", ""))
    cells: list[Text | str] = [Text(row.after.label)]
    for measure in (row.before, row.after):
        cells.append(show(measure.value, measure.unit))
        if is_wide:
            cells.append(Text(show_interval(measure.low, measure.high, measure.unit), style="dim"))
    return [
        *cells,
        Text(show_change(row), style=style),
        Text(show_change_interval(row), style="dim"),
        Text(mark, style),
    ]
