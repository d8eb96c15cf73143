"""The part of the page that says what came out: tiles, bars, the table of all figures, the tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from outpace.evaluate import Comparison, Difference, Evaluation, Measure, Unit
from outpace.report.charts import Bar, BarGroup, bar_chart, change_mark
from outpace.report.headline import change_in_words
from outpace.report.markup import Markup, tag
from outpace.report.numbers import (
    ABSENT,
    show,
    show_change,
    show_change_interval,
    show_interval,
    show_measure,
)
from outpace.report.runs import RunData
from outpace.report.tables import is_headline, split_name

_TILES = {"pass@1": "Correct", "speedup_median": "Median speed-up of correct", "compliance": "Nothing forbidden"}


def tiles(run: RunData) -> Markup:
    """The figures that matter most, large, for each split: after, with what they were before."""
    found = []
    for name, heading in _TILES.items():
        if run.comparison is not None:
            sides = [_tile(split, rows[name].after, rows[name]) for split, rows in run.comparison.by_split.items()]
        elif run.latest is not None:
            sides = [_tile(split, measures[name], None) for split, measures in run.latest.by_split.items()]
        else:
            return Markup("")
        found.append(tag("div", tag("h3", heading), tag("div", *sides, class_="sides"), class_="card"))
    return tag("div", *found, class_="grid-of-charts tiles")


def _tile(split: str, measure: Measure, row: Difference | None) -> Markup:
    if row is None:
        interval = show_interval(measure.low, measure.high, measure.unit)
        feet = [tag("div", interval, class_="from")] if interval else []
    else:
        feet = [
            tag("div", f"from {show(row.before.value, row.before.unit)}", class_="from"),
            tag("span", change_in_words(row), class_=f"chip {row.judgement}"),
        ]
    name = tag("div", f"{split_name(split)} tasks", class_="from")
    return tag("div", name, tag("div", show(measure.value, measure.unit), class_="big"), *feet)


def result_charts(runs: Sequence[RunData]) -> Markup:
    """Bars with intervals: before and after of one run, or one bar for each of several; speed has its own scale."""
    splits = list(dict.fromkeys(split for run in runs if run.latest for split in run.latest.by_split))
    figures = []
    for split in splits:
        shares = _bar_groups(runs, split, Unit.SHARE)
        title = f"{split_name(split)} tasks, share of samples".capitalize()
        figures.append(_bars(shares, title, runs, high=1.0))
    speeds = [
        replace(group, label=f"{split_name(split)}: {group.label}" if len(splits) > 1 else group.label)
        for split in splits
        for group in _bar_groups(runs, split, Unit.RATIO)
    ]
    if speeds:
        ends = [end for group in speeds for bar in group.bars for end in (bar.value, bar.high) if end is not None]
        figures.append(_bars(speeds, "Speed-up of correct answers", runs, high=max([1.2, *ends]) * 1.03, mark=1.0))
    return tag("div", *figures, class_="grid-of-charts") if figures else Markup("")


def _bars(
    groups: Sequence[BarGroup], title: str, runs: Sequence[RunData], *, high: float, mark: float | None = None
) -> Markup:
    bars = {bar.style: bar.title.partition(":")[0] for group in groups for bar in group.bars}
    keys = [tag("li", swatch(style), who) for style, who in bars.items()] if len(runs) == 1 else []
    confidence = {run.latest.settings.confidence for run in runs if run.latest}
    keys += [tag("li", f"whiskers: {share * 100:g} % interval") for share in sorted(confidence)]
    return tag(
        "figure", tag("h3", title), bar_chart(groups, title, high=high, mark=mark), tag("ul", *keys, class_="legend")
    )


def swatch(style: str) -> Markup:
    """A small dot in one of the style sheet's colours."""
    return tag("svg", tag("circle", cx=5, cy=5, r=4, class_=style), viewBox="0 0 10 10", aria_hidden="true")


def _bar_groups(runs: Sequence[RunData], split: str, unit: Unit) -> list[BarGroup]:
    found: dict[str, list[tuple[str, str, Measure]]] = {}
    for number, run in enumerate(runs):
        for who, style, evaluation in _sides(run, number, alone=len(runs) == 1):
            for name, measure in evaluation.by_split.get(split, {}).items():
                if measure.unit is unit and (unit is Unit.RATIO or is_headline(name)):
                    found.setdefault(name, []).append((who, style, measure))
    return [
        BarGroup(label=bars[0][2].label, bars=tuple(_bar(*bar) for bar in bars))
        for bars in found.values()
        if any(measure.value is not None for _, _, measure in bars)
    ]


def _sides(run: RunData, number: int, *, alone: bool) -> list[tuple[str, str, Evaluation]]:
    before, latest = run.evaluations.get("before"), run.latest
    if not alone:
        return [(run.name, f"f{number % 8}", latest)] if latest else []
    if run.comparison is not None and before and latest:
        return [("before", "before", before), ("after", "after", latest)]
    return (
        [("before" if latest is before else run.name, "before" if latest is before else "after", latest)]
        if latest
        else []
    )


def _bar(who: str, style: str, measure: Measure) -> Bar:
    return Bar(
        value=measure.value,
        low=measure.low,
        high=measure.high,
        style=style,
        text=show(measure.value, measure.unit),
        title=f"{who}: {show_measure(measure)}, {measure.samples} samples of {measure.tasks} tasks",
    )


def comparison_table(comparison: Comparison) -> Markup:
    """Every measure of every split: before, after, change, each with its interval."""
    heads = ("", comparison.before_label, "", comparison.after_label, "", "change", "interval", "samples")
    rows = []
    for split, differences in comparison.by_split.items():
        rows.append(tag("tr", tag("td", f"{split_name(split)} tasks".capitalize(), colspan=8), class_="part"))
        rows += [_comparison_row(row) for row in differences.values()]
    return _table(heads, rows)


def _comparison_row(row: Difference) -> Markup:
    cells = [tag("td", row.after.label)]
    for measure in (row.before, row.after):
        cells.append(tag("td", show(measure.value, measure.unit), class_="n"))
        cells.append(tag("td", show_interval(measure.low, measure.high, measure.unit), class_="soft"))
    cells.append(tag("td", show_change(row), class_=f"n {row.judgement}"))
    cells.append(tag("td", show_change_interval(row), class_="soft"))
    cells.append(tag("td", f"{row.before.samples} / {row.after.samples}", class_="n soft"))
    return tag("tr", *cells)


def runs_table(runs: Sequence[RunData]) -> Markup:
    """Every measure of every split, one column a run."""
    found = [run for run in runs if run.latest is not None]
    heads = ("", *(run.name for run in found))
    rows = []
    for split in dict.fromkeys(split for run in found if run.latest for split in run.latest.by_split):
        columns = [run.latest.by_split.get(split, {}) if run.latest else {} for run in found]
        rows.append(tag("tr", tag("td", f"{split_name(split)} tasks".capitalize(), colspan=len(heads)), class_="part"))
        labels = {name: measure.label for column in columns for name, measure in column.items()}
        rows += [
            tag("tr", tag("td", label), *(_cell(column, name) for column in columns)) for name, label in labels.items()
        ]
    return _table(heads, rows)


def evaluation_table(evaluation: Evaluation) -> Markup:
    """Every measure of every split of one evaluation."""
    rows = []
    for split, measures in evaluation.by_split.items():
        rows.append(tag("tr", tag("td", f"{split_name(split)} tasks".capitalize(), colspan=3), class_="part"))
        rows += [
            tag("tr", tag("td", m.label), _cell(measures, m.name), tag("td", str(m.samples), class_="n soft"))
            for m in measures.values()
        ]
    return _table(("", evaluation.label, "samples"), rows)


def _cell(measures: Mapping[str, Measure], name: str) -> Markup:
    return tag("td", show_measure(measures[name]) if name in measures else ABSENT, class_="n")


def tasks_table(run: RunData) -> Markup:
    """One row a task, train and held-out apart: how often it is solved, how fast, in how many ways."""
    latest, before = run.latest, run.evaluations.get("before")
    if latest is None:
        return Markup("")
    before = None if before is latest else before
    split_of = {sample.task_id: sample.split for sample in latest.samples}
    heads = ("task", "", "correct", "speed-up, median", "distinct correct", "samples")
    rows = []
    for split in latest.by_split:
        rows.append(tag("tr", tag("td", f"{split_name(split)} tasks".capitalize(), colspan=len(heads)), class_="part"))
        for task_id, measures in latest.by_task.items():
            if split_of.get(task_id, split) == split:
                rows.append(_task_row(task_id, before.by_task.get(task_id) if before else None, measures))
    return _table(heads, rows)


def _task_row(task_id: str, before: Mapping[str, Measure] | None, after: Mapping[str, Measure]) -> Markup:
    old = before["pass@1"].value if before else None
    cells = [tag("td", task_id), tag("td", change_mark(old, after["pass@1"].value))]
    for name in ("pass@1", "speedup_median", "distinct_correct"):
        unit = after[name].unit if after[name].unit is not Unit.PROGRAMS else Unit.TOKENS  # of one task: a whole number
        was = tag("span", f"{show(before[name].value, unit)} → ", class_="soft") if before else Markup("")
        cells.append(tag("td", was, show(after[name].value, unit), class_="n"))
    return tag("tr", *cells, tag("td", str(after["pass@1"].samples), class_="n soft"))


def _table(heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    cells = [tag("th", text, scope="col", class_="n" if number else None) for number, text in enumerate(heads)]
    inside = tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows))
    return tag("div", inside, class_="scroll", tabindex=0)
