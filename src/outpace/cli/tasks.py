"""`outpace tasks`: list, show, check."""

from typing import Annotated

import typer
from rich.table import Table

from outpace.cli.output import AsJson, console, print_json
from outpace.schema import Task

app = typer.Typer(no_args_is_help=True, help="List, show and check programming tasks.")

Spec = Annotated[
    str,
    typer.Argument(help="builtin, builtin:heldout, a family, humaneval, mbpp:PATH, FILE.py or FILE.jsonl."),
]


def _row(task: Task) -> dict[str, object]:
    return {
        "id": task.id,
        "family": task.family,
        "split": task.split,
        "entry_point": task.entry_point,
        "timed": task.is_timed,
        "tags": task.tags,
    }


@app.command("list")
def list_tasks(spec: Spec = "builtin", as_json: AsJson = False) -> None:
    """List the tasks of a set.

    Example: `outpace tasks list builtin:heldout`
    """
    from outpace import tasks

    found = tasks.load(spec)
    if as_json:
        print_json([_row(task) for task in found])
        return
    table = Table("task", "entry point", "split", "timed", title=f"{len(found)} tasks", title_justify="left")
    for task in found:
        table.add_row(task.id, task.entry_point, task.split, "yes" if task.is_timed else "no")
    console.print(table)


@app.command("show")
def show(
    task_id: Annotated[str, typer.Argument(help="Task id, for example linalg/matmul.")], as_json: AsJson = False
) -> None:
    """Show one task: its prompt and its reference.

    Example: `outpace tasks show linalg/matmul`
    """
    from outpace import tasks

    task = tasks.get(task_id)
    if as_json:
        print_json({**_row(task), "prompt": task.prompt, "reference": task.reference, "limits": task.limits})
        return
    for message in task.prompt:
        console.print(f"[bold]{message['role']}[/bold]")
        console.print(message["content"], markup=False, highlight=False)
    if task.reference is not None:
        console.print("\n[bold]reference[/bold] (the honest baseline that speed is measured against)")
        console.print(task.reference, markup=False, highlight=False)


@app.command("check")
def check(spec: Spec, as_json: AsJson = False) -> None:
    """Check a task file or a set: does the reference agree with the oracle, is the timing size right, ...?

    Exit code 1 when something was found.

    Example: `outpace tasks check my_tasks.py`
    """
    from outpace import tasks
    from outpace.sandbox import ProcessSandbox, SandboxSettings

    found = tasks.load(spec)
    sandbox = ProcessSandbox(SandboxSettings())
    try:
        findings = {task.id: tasks.check(task, sandbox) for task in found}
    finally:
        sandbox.close()
    bad = {task_id: entries for task_id, entries in findings.items() if entries}
    if as_json:
        print_json({"tasks": len(found), "findings": bad})
    else:
        for task_id, entries in bad.items():
            for finding in entries:
                console.print(f"{task_id}: {finding.message}", markup=False, highlight=False)
        console.print(f"{len(found)} tasks checked, {len(bad)} with findings")
    raise typer.Exit(1 if bad else 0)
