"""`report.md`: the same report as text, for terminals, pull requests and diffs.

Text that a model wrote stands in fences longer than any run of backticks in it; elsewhere it is escaped.
"""

import re
from collections.abc import Sequence

from outpace.evaluate import Evaluation
from outpace.report.charts import show_on_axis, spark
from outpace.report.code import shortened
from outpace.report.curves import panels_of_run
from outpace.report.facts import costs, describe, isolation_sentences, program_facts
from outpace.report.headline import headlines
from outpace.report.markup import visible
from outpace.report.numbers import ABSENT, show, show_change, show_change_interval, show_measure
from outpace.report.picks import Pick, pick_programs
from outpace.report.runs import RunData, flat
from outpace.report.tables import evaluation_notes, split_name

_SPECIAL = re.compile(r"([\\`*\[\]<>#+|~&$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|\.(?<=www\.))")


def document(runs: Sequence[RunData]) -> str:
    """The whole document for one run, or for several one after the other behind a table of all."""
    parts = [] if len(runs) == 1 else [f"# {len(runs)} runs side by side", _runs_table(runs)]
    parts += [part for run in runs for part in _run(run)]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain_text(text: str) -> str:
    """Text that Markdown and HTML leave alone, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(visible(text).split())).replace("\\<", "&lt;").replace("\\&", "&amp;")


def fenced(text: str, language: str = "") -> str:
    """Text in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{visible(shortened(text)).rstrip()}\n{fence}"


def _run(run: RunData) -> list[str]:
    picks = pick_programs(run.latest.samples) if run.latest else []
    return [
        f"# {plain_text(run.name)}",
        plain_text(describe(run)),
        "\n".join(f"- {sentence}" for sentence in headlines(run)),
        _list("Warnings", run.warnings),
        _list("What is missing", run.missing),
        _results(run),
        _curves(run),
        _tasks(run),
        _heading("Programs", "\n\n".join(_program(pick) for pick in picks)),
        _heading("How it was run", " ".join(plain_text(sentence) for sentence in isolation_sentences(run))),
        _pairs("Settings", flat(run.recipe)),
        _pairs("Versions, machine and cost", {**costs(run), **flat(run.provenance)}),
    ]


def _heading(title: str, body: str) -> str:
    return f"## {title}\n\n{body}" if body else ""


def _list(title: str, texts: Sequence[str]) -> str:
    return _heading(title, "\n".join(f"- {plain_text(text)}" for text in texts))


def _pairs(title: str, values: dict[str, str]) -> str:
    return _heading(title, "\n".join(f"- {plain_text(key)}: {plain_text(value)}" for key, value in values.items()))


def _results(run: RunData) -> str:
    if run.comparison is None:
        return _evaluation(run.latest) if run.latest else ""
    comparison = run.comparison
    parts = []
    for split, rows in comparison.by_split.items():
        cells = [
            [
                plain_text(row.after.label),
                show_measure(row.before),
                show_measure(row.after),
                f"{show_change(row)} {f'({interval})' if (interval := show_change_interval(row)) else ''}".strip(),
                "" if row.judgement == "unclear" else row.judgement,
                f"{row.before.samples} / {row.after.samples}",
            ]
            for row in rows.values()
        ]
        heads = ["", comparison.before_label, comparison.after_label, "change", "", "samples"]
        parts.append(f"### {split_name(split)} tasks\n\n{_table(heads, cells)}")
    parts += [f"- {plain_text(note)}" for note in comparison.notes]
    return _heading(f"Results, with {comparison.confidence * 100:g} % intervals", "\n\n".join(parts))


def _evaluation(evaluation: Evaluation) -> str:
    parts = []
    for split, measures in evaluation.by_split.items():
        cells = [[plain_text(m.label), show_measure(m), str(m.samples)] for m in measures.values()]
        parts.append(f"### {split_name(split)} tasks\n\n{_table(['', evaluation.label, 'samples'], cells)}")
    parts += [f"- {plain_text(note)}" for note in evaluation_notes(evaluation)]
    return _heading(f"Results, with {evaluation.settings.confidence * 100:g} % intervals", "\n\n".join(parts))


def _runs_table(runs: Sequence[RunData]) -> str:
    found = [(run, run.latest) for run in runs if run.latest is not None]
    parts = []
    for split in dict.fromkeys(split for _, latest in found for split in latest.by_split):
        columns = [latest.by_split.get(split, {}) for _, latest in found]
        labels = {name: measure.label for column in columns for name, measure in column.items()}
        cells = [
            [plain_text(label), *(show_measure(c[name]) if name in c else ABSENT for c in columns)]
            for name, label in labels.items()
        ]
        heads = ["", *(run.name for run, _ in found)]
        parts.append(f"### {split_name(split)} tasks\n\n{_table(heads, cells)}")
    return "\n\n".join(parts)


def _curves(run: RunData) -> str:
    cells = []
    for panel in panels_of_run(run.metrics):
        for line in panel.lines:
            ends = (show_on_axis(float(f"{value:.3g}"), panel.unit) for value in (line.values[0], line.values[-1]))
            name = f"{panel.title}: {line.label}" if len(panel.lines) > 1 else panel.title
            cells.append([plain_text(name), next(ends), spark(line.values), next(ends)])
    return _heading("Training", _table(["", "first", "", "last"], cells)) if cells else ""


def _tasks(run: RunData) -> str:
    latest, before = run.latest, run.evaluations.get("before")
    if latest is None:
        return ""
    split_of = {sample.task_id: sample.split for sample in latest.samples}
    parts = []
    for split in latest.by_split:
        cells = []
        for task_id, after in latest.by_task.items():
            if split_of.get(task_id, split) == split:
                old = before.by_task.get(task_id) if before and before is not latest else None
                pairs = [
                    (f"{show(old[name].value, old[name].unit)} → " if old else "")
                    + show(after[name].value, after[name].unit)
                    for name in ("pass@1", "speedup_median")
                ]
                cells.append([plain_text(task_id), *pairs, str(after["pass@1"].samples)])
        heads = ["task", "correct", "speed-up, median", "samples"]
        parts.append(f"### {split_name(split)} tasks\n\n{_table(heads, cells)}")
    return _heading("Tasks", "\n\n".join(parts))


def _program(pick: Pick) -> str:
    sample = pick.sample
    outcome = sample.outcome.value if sample.outcome else "not graded"
    facts = ", ".join(plain_text(fact) for fact in [outcome, *program_facts(sample)])
    text, language = (sample.completion, "") if sample.source is None else (sample.source, "python")
    return f"### {pick.why.capitalize()}: {plain_text(sample.task_id)}\n\n{facts}\n\n{fenced(text, language)}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [[plain_text(head) for head in heads], ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
