"""The commands, in the order in which a newcomer meets them."""

import typer

from outpace.cli import auditing, benches, grading, machine, runs, tasks
from outpace.version import __version__

app = typer.Typer(
    name="outpace",
    help="Train code language models to write programs that are right, safe and fast, by running what they write.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"outpace {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    """Train code language models to write programs that are right, safe and fast, by running what they write."""


app.command("doctor")(machine.doctor)
app.add_typer(tasks.app, name="tasks")
app.command("grade")(grading.grade)
app.command("audit")(auditing.audit)
app.command("train")(runs.train)
app.command("eval")(runs.evaluate)
app.command("report")(runs.report)
app.command("watch")(runs.watch)
app.command("plan")(runs.plan)
app.command("export")(runs.export)
app.add_typer(benches.app, name="bench")
