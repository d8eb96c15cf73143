import dataclasses
import json
from pathlib import Path

import pytest
from evaluation_fakes import evaluation, many
from report_runs import make_run, samples, save
from rich.console import Console, RenderableType

from outpace.errors import RunFolderError
from outpace.evaluate import compare
from outpace.report import render_comparison, render_evaluation, watch
from outpace.report.numbers import show_bytes, show_duration, show_plain
from outpace.report.runs import read_run


def shown(what: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, file=Path("/dev/null").open("w"), legacy_windows=False)  # noqa: SIM115
    console.print(what)
    console.file.close()
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


def test_a_comparison_is_this_table_on_80_columns() -> None:
    before = evaluation(many(0.25, tasks=24), label="before")
    after = evaluation(many(0.75, tasks=24, speedup=2.5), label="after")
    table = shown(render_comparison(compare(before, after)))
    assert table.splitlines()[:9] == [
        "before → after",
        "                                before   after change 95 % interval",
        "train, 12 tasks, 48 samples",
        "code parses                    100.0 % 100.0 %    0.0 −7.4 to +7.4",
        "nothing forbidden              100.0 % 100.0 %    0.0 −7.4 to +7.4",
        "correct (pass@1)                25.0 %  75.0 %  +50.0 +31.3 to +66.7 ▲ better",
        "pass@4                         100.0 % 100.0 %    0.0 −26.5 to +26.5",
        "faster than 1x                   0.0 %  75.0 %  +75.0 +60.2 to +87.9 ▲ better",
        "faster than 1.5x                 0.0 %  75.0 %  +75.0 +60.2 to +87.9 ▲ better",
    ]
    assert "held-out, 12 tasks, 48 samples" in table
    assert "…" not in table


def test_a_wide_terminal_shows_the_intervals_of_both_sides() -> None:
    same = evaluation(many(0.5))
    table = shown(render_comparison(compare(same, same), width=120, per_task=True, everything=True), 120)
    assert "imports stdlib only" in table
    assert "fake/5" in table
    assert "…" not in table
    assert "better" not in table


def test_labels_and_notes_are_never_read_as_markup() -> None:
    before, after = evaluation(many(0.5), label="[bold]x[/bold]"), evaluation(many(0.5, tasks=3), label="[red]y")
    table = shown(render_comparison(compare(before, after)))
    assert "[bold]x[/bold]" in table
    assert "only the 12 samples that both sides have" in table


def test_one_evaluation_is_shown_with_its_samples() -> None:
    table = shown(render_evaluation(evaluation(many(0.5), label="starter"), per_task=True))
    assert table.startswith("starter, with 95 % intervals")
    assert "train, 3 tasks, 12 samples" in table
    assert "fake/5" in table


def test_tasks_that_are_not_timed_have_no_rows_of_fast_programs() -> None:
    untimed = [dataclasses.replace(s, timed_task=False, speedup=None, speedup_bound=None) for s in many(0.5)]
    found = evaluation(untimed)
    for table in (shown(render_evaluation(found)), shown(render_comparison(compare(found, found)))):
        assert "faster than" not in table
        assert "speed-up, median" in table


def test_watching_shows_the_latest_figures_and_the_warnings(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", after=None)
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 4, "reward": 7.25, "seconds/step": 2, "warnings": ["too [bold]long"]}) + "\n")
    (run / "recipe.yaml").write_text("max_steps: 10\n")
    console = Console(width=80, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    watch(run, console, once=True)
    console.file.close()
    text = console.export_text()
    assert "4 of 10 steps  12 s left" in text
    assert "7.25" in text
    assert "! step 4: too [bold]long" in text


def test_watching_ends_with_the_run_and_waits_for_one_that_has_not_begun(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        make_run(run, after=None) if len(waits) == 1 else save(run, "after", samples(2))

    console = Console(width=80, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    watch(run, console, interval_s=0.5, sleep=sleep)
    console.file.close()
    assert waits == [0.5, 0.5]


def test_a_run_without_evaluations_is_over_after_its_last_step(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", before=None, after=None, steps=2)
    (run / "recipe.yaml").write_text("max_steps: 3\neval_samples: 0\n")
    assert not read_run(run).is_over
    make_run(tmp_path / "run", before=None, after=None, steps=3)
    (run / "recipe.yaml").write_text("max_steps: 3\neval_samples: 0\n")
    assert read_run(run).is_over
    assert read_run(run).missing == ("The recipe leaves evaluations out (eval_samples: 0).",)


def test_watching_nothing_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="there is no run folder"):
        watch(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (7830, "2 h 10 min"),
    ],
)
def test_durations_are_written_for_people(seconds: float | None, text: str) -> None:
    assert show_duration(seconds) == text


def test_sizes_and_plain_numbers_are_written_for_people() -> None:
    assert [show_bytes(size) for size in (None, 512_000_000, 13_760_000_000)] == ["–", "512 MB", "13.76 GB"]
    assert [show_plain(value) for value in (0, 3, 1234, 12345.6, 0.03125, 3e-6)] == [
        "0",
        "3",
        "1,234",
        "12,346",
        "0.0312",
        "3e-06",
    ]
