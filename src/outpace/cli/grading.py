"""`outpace grade`: one completion, one verdict, one reward."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from outpace.cli.output import AsJson, console, print_json, read_text
from outpace.errors import ConfigError
from outpace.schema import Outcome, RewardVector, Sample, Verdict

AllowWeak = Annotated[
    bool, typer.Option("--allow-weak-isolation", help="Run even where the kernel cannot isolate properly.")
]


def grade(
    file: Annotated[str, typer.Argument(help="A completion (text with a fenced block), a .py file, or - for stdin.")],
    task: Annotated[str, typer.Option(help="Task id, for example linalg/matmul.")],
    lenient: Annotated[bool, typer.Option(help="Accept code without a fence.")] = False,
    speed: Annotated[bool, typer.Option("--speed/--no-speed", help="Time a correct program.")] = True,
    allow_weak_isolation: AllowWeak = False,
    as_json: AsJson = False,
) -> None:
    """Grade one completion: is it right, safe and fast?

    Exit code 0 when the program is correct, 1 when it is not.

    Example: `outpace grade answer.md --task linalg/matmul --json`
    """
    from outpace import reward, tasks
    from outpace.grade import Grader, GradeSettings
    from outpace.sandbox import SandboxSettings

    if file != "-" and not Path(file).is_file():
        raise ConfigError(f"there is no file {file}: give a file with the completion, or - for stdin")
    chosen = tasks.get(task)
    text = read_text(file)
    settings = GradeSettings(
        lenient=lenient or file.endswith(".py"),
        measure_speed=speed,
        sandbox=SandboxSettings(allow_weak_isolation=allow_weak_isolation),
    )
    with Grader(workers=1, settings=settings) as grader:
        verdict = grader.grade(text, chosen)
    scored = reward.build("default").score([Sample(task=chosen, completion=text, verdict=verdict)])[0]
    if as_json:
        print_json(verdict_json(verdict, scored))
    else:
        console.print(verdict_table(verdict, scored))
    raise typer.Exit(0 if verdict.outcome is Outcome.CORRECT else 1)


def verdict_json(verdict: Verdict, scored: RewardVector) -> dict[str, Any]:
    """The JSON of `outpace grade`; its keys are a contract."""
    static, timing, execution = verdict.static, verdict.timing, verdict.execution
    return {
        "task": verdict.task_id,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "detail": verdict.detail,
        "static": None
        if static is None
        else {
            "parses": static.parses,
            "compliant": static.is_compliant,
            "syntax_error": static.syntax_error,
            "violations": static.violations,
        },
        "tests": {
            "passed": 0 if execution is None else execution.tests_passed,
            "total": 0 if execution is None else execution.tests_total,
        },
        "timing": None
        if timing is None
        else {
            "ratio": timing.ratio,
            "low": timing.low,
            "high": timing.high,
            "noise_floor": timing.noise_floor,
            "trusted": timing.trusted,
            "note": timing.note,
        },
        "rewards": {**scored.components, "total": scored.total},
        "isolation": verdict.isolation,
    }


def verdict_table(verdict: Verdict, scored: RewardVector) -> Table:
    """The same for people: one line per stage."""
    table = Table(title=f"{verdict.task_id}: {verdict.outcome.value}", show_header=False, title_justify="left")
    if verdict.reason:
        table.add_row("reason", f"{verdict.reason} {verdict.detail}".strip())
    if verdict.candidate is not None:
        table.add_row("code found", verdict.candidate.where)
    if verdict.static is not None:
        found = ", ".join(v.reason for v in verdict.static.violations) or "nothing refused"
        table.add_row("static check", verdict.static.syntax_error or found)
    if verdict.execution is not None:
        table.add_row("hidden tests", f"{verdict.execution.tests_passed} of {verdict.execution.tests_total} passed")
    if verdict.timing is not None:
        t = verdict.timing
        table.add_row(
            "speed", f"{t.ratio:.2f}x the reference (95 % interval {t.low:.2f}-{t.high:.2f}) {t.note}".strip()
        )
    for name, value in scored.components.items():
        table.add_row(f"reward {name}", "none" if value is None else f"{value:+.3f}")
    table.add_row("reward total", "none" if scored.total is None else f"{scored.total:+.3f}")
    if verdict.isolation is not None:
        table.add_row("isolation", verdict.isolation.level)
    return table
