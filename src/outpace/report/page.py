"""`report.html`: one file that needs nothing else, light and dark, on a phone too.

Its content security policy allows no script and no request; every text of a model is escaped by `markup`.
"""

from collections.abc import Sequence
from importlib.resources import files

from outpace import __version__
from outpace.report.charts import line_chart, show_on_axis
from outpace.report.code import code_block, shortened
from outpace.report.curves import Panel, panels_of_run, panels_of_runs
from outpace.report.facts import costs, describe, isolation_sentences, program_facts
from outpace.report.headline import headlines
from outpace.report.markup import Markup, join, tag
from outpace.report.picks import Pick, pick_programs
from outpace.report.results_html import (
    comparison_table,
    evaluation_table,
    result_charts,
    runs_table,
    swatch,
    tasks_table,
    tiles,
)
from outpace.report.runs import RunData, flat
from outpace.report.tables import evaluation_notes

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(runs: Sequence[RunData]) -> str:
    """The whole document for one run, or for several side by side."""
    title = " · ".join(run.name for run in runs)
    body = _one_run(runs[0]) if len(runs) == 1 else _several_runs(runs)
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title} – outpace"),
        Markup(f"<style>{files('outpace.report').joinpath('style.css').read_text(encoding='utf-8')}</style>"),
    )
    foot = tag(
        "footer", f"outpace {__version__}. Intervals: bootstrap over tasks and over samples; see docs/evaluation.md."
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", tag("main", body, foot)), lang="en") + "\n"


def _one_run(run: RunData) -> Markup:
    return join(
        [
            tag("h1", run.name),
            tag("p", describe(run), class_="kind"),
            tag("div", *(tag("p", sentence) for sentence in headlines(run)), class_="lead"),
            tiles(run),
            _warnings(run),
            _section("Results", result_charts([run]), _all_figures(run)),
            _section("Training", _charts(panels_of_run(run.metrics))),
            *_details(run),
        ]
    )


def _several_runs(runs: Sequence[RunData]) -> Markup:
    keys = [tag("li", swatch(f"f{number % 8}"), run.name) for number, run in enumerate(runs)]
    figures = tag("details", tag("summary", "All figures, with intervals"), runs_table(runs))
    parts = [
        tag("h1", f"{len(runs)} runs side by side"),
        tag("ul", *keys, class_="legend"),
        _section("Results", result_charts(runs), figures),
        _section("Training", _charts(panels_of_runs({run.name: run.metrics for run in runs}))),
    ]
    for run in runs:
        lead = tag("div", *(tag("p", sentence) for sentence in headlines(run)), class_="lead")
        inside = [tag("p", describe(run), class_="kind"), lead, _warnings(run), _all_figures(run)]
        inside += [_section("Training", _charts(panels_of_run(run.metrics))), *_details(run)]
        parts.append(tag("section", tag("h2", f"Run {run.name}"), *inside))
    return join(parts)


def _details(run: RunData) -> list[Markup]:
    picks = pick_programs(run.latest.samples) if run.latest else []
    return [
        _section("Tasks", tasks_table(run)),
        _section("Programs", *(_program(pick) for pick in picks)),
        _section("How it was run", _isolation(run), _settings("Settings", flat(run.recipe)), _provenance(run)),
    ]


def _section(title: str, *children: str) -> Markup:
    """A heading and what is under it; nothing at all when there is nothing under it."""
    return join([tag("h2", title), *children]) if any(children) else Markup("")


def _warnings(run: RunData) -> Markup:
    parts = []
    for title, texts in (("Warnings", run.warnings), ("What is missing", run.missing)):
        if texts:
            parts.append(join([tag("h3", title), tag("ul", *(tag("li", text) for text in texts))]))
    return tag("div", *parts, class_="card warnings") if parts else Markup("")


def _all_figures(run: RunData) -> Markup:
    if run.comparison is not None:
        notes = [tag("p", note, class_="soft") for note in run.comparison.notes]
        return tag("details", tag("summary", "All figures, with intervals"), comparison_table(run.comparison), *notes)
    if run.latest is None:
        return Markup("")
    notes = [tag("p", note, class_="soft") for note in evaluation_notes(run.latest)]
    return tag("details", tag("summary", "All figures, with intervals"), evaluation_table(run.latest), *notes)


def _charts(panels: Sequence[Panel]) -> Markup:
    if not panels:
        return Markup("")
    return tag("div", *(_figure(panel) for panel in panels), class_="grid-of-charts")


def _figure(panel: Panel) -> Markup:
    items = []
    for number, line in enumerate(panel.lines):
        last = show_on_axis(float(f"{line.values[-1]:.3g}"), panel.unit)
        name = line.label if len(panel.lines) > 1 else "last"
        items.append(tag("li", swatch(f"f{number % 8}"), f"{name} ", tag("b", last)))
    return tag("figure", tag("h3", panel.title), line_chart(panel), tag("ul", *items, class_="legend"))


def _program(pick: Pick) -> Markup:
    sample = pick.sample
    outcome = sample.outcome.value if sample.outcome else "not graded"
    facts = [tag("b", pick.why), tag("span", outcome, class_=f"chip {'correct' if sample.is_correct else 'bad'}")]
    facts.append(tag("span", sample.task_id))
    for text in program_facts(sample):
        facts.append(tag("span", text, class_="soft"))
    parts = [tag("header", *facts)]
    if sample.source is not None:
        parts.append(code_block(sample.source))
    if sample.detail:
        parts.append(
            tag("details", tag("summary", "What it said when it failed"), tag("pre", shortened(sample.detail)))
        )
    whole = tag("pre", shortened(sample.completion))
    parts.append(tag("details", tag("summary", "The whole completion"), whole) if sample.source is not None else whole)
    return tag("article", *parts, class_="card")


def _isolation(run: RunData) -> Markup:
    sentences = isolation_sentences(run)
    return tag("p", " ".join(sentences)) if sentences else Markup("")


def _provenance(run: RunData) -> Markup:
    return _settings("Versions, machine and cost", {**costs(run), **flat(run.provenance)})


def _settings(title: str, values: dict[str, str]) -> Markup:
    if not values:
        return Markup("")
    pairs = [part for key, value in values.items() for part in (tag("dt", key), tag("dd", value))]
    return tag("details", tag("summary", title), tag("dl", *pairs))
