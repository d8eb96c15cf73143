"""`outpace audit`: which attacks pay, which honest programs are punished."""

from pathlib import Path
from typing import Annotated

import typer

from outpace.cli.grading import AllowWeak
from outpace.cli.output import AsJson, console, print_json


def audit(
    cases: Annotated[Path | None, typer.Option(help="A case file (JSON lines); default: the built-in corpus.")] = None,
    reward: Annotated[
        str | None, typer.Option(help="Audit your own TRL-style reward callable instead of ours: pkg.mod:func.")
    ] = None,
    allow_weak_isolation: AllowWeak = False,
    as_json: AsJson = False,
) -> None:
    """Try attacks and honest programs against a reward: which attacks pay, which honest programs are punished?

    Exit code 1 when an attack pays or an honest program is misjudged.

    Example: `outpace audit --reward my_pkg.rewards:accuracy`
    """
    from outpace.audit import run_audit

    report = run_audit(cases=cases, reward=reward, allow_weak_isolation=allow_weak_isolation)
    if as_json:
        print_json(report.to_json())
    else:
        console.print(report)
    raise typer.Exit(0 if report.ok else 1)
