"""`outpace doctor`."""

import typer

from outpace.cli.output import AsJson, console, print_json


def doctor(as_json: AsJson = False) -> None:
    """Show which isolation layers this machine grants, what each stops, and what is missing.

    Exit code 1 when untrusted code would not run here without `--allow-weak-isolation`.

    Example: `outpace doctor --json`
    """
    from outpace.doctor import examine

    report = examine()
    if as_json:
        print_json(report.to_json())
    else:
        console.print(report)
    raise typer.Exit(0 if report.ok else 1)
