"""`outpace bench ...`: measurements that anyone can repeat, ours beside others in one run."""

from typing import Annotated, Any

import typer
from rich.table import Table

from outpace.cli.output import AsJson, console, print_json

app = typer.Typer(no_args_is_help=True, help="Measure this machine: ours beside others, in one run.")

Quick = Annotated[bool, typer.Option("--quick", help="Fewer repetitions: a look, not a result.")]


def _show(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(figures)
        return
    table = Table("figure", "value", show_header=False)
    for name, value in _flat(figures):
        table.add_row(name, f"{value:,.4g}" if isinstance(value, float) else str(value))
    console.print(table)


def _flat(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [
            pair for key, entry in value.items() for pair in _flat(entry, f"{prefix}.{key}" if prefix else str(key))
        ]
    return [(prefix, value)]


@app.command("timing")
def timing(quick: Quick = False, as_json: AsJson = False) -> None:
    """Precision of the speed measurement, quiet and beside busy neighbours, ours and the article's harness.

    Example: `outpace bench timing --json`
    """
    from outpace.bench import timing as bench

    _show(bench.run(quick=quick), as_json)
