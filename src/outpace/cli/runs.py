"""`outpace train`, `eval`, `report`, `watch`, `export`: what happens to a run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from outpace.cli.grading import AllowWeak
from outpace.cli.output import AsJson, console, print_json
from outpace.errors import ConfigError

if TYPE_CHECKING:
    from outpace.evaluate import SampleCompletions

RecipeFile = Annotated[str, typer.Argument(help="A YAML recipe, or the name of a shipped one, such as starter.")]
Overrides = Annotated[list[str] | None, typer.Argument(help="Settings to change: key=value ...")]


def train(
    recipe: RecipeFile,
    overrides: Overrides = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and load no weights.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start anew; an earlier run of this name is kept aside.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train a policy by running what it writes: evaluate, train, evaluate again, report.

    The same command resumes a run that was interrupted. Exit code 130 after Ctrl-C or SIGTERM.

    Example: `outpace train recipes/starter.yaml max_steps=10 rewards.speed=0.5`
    """
    from outpace import training
    from outpace.cli.output import progress_console
    from outpace.config import load_recipe
    from outpace.records import RunFolder
    from outpace.report import render_comparison, write
    from outpace.training.environment import rank

    settings = load_recipe(recipe, overrides or ())
    if dry_run:
        training.dry_run(settings, console)
        return
    is_main = rank() == 0
    run = RunFolder.create(settings.output_dir, settings.name, fresh=fresh and is_main)
    result = training.train(settings, run, progress_console(as_json))
    if not is_main:  # the first process of several writes and prints for all
        raise typer.Exit(0 if result.status == "finished" else 130)
    markdown, html = write([run.path])
    if as_json:
        print_json({**_result(result), "report": {"markdown": markdown, "html": html}})
    else:
        if result.comparison is not None:
            console.print(render_comparison(result.comparison, width=console.width))
        console.print(f"{result.status} at step {result.steps}; report: {html}", highlight=False, soft_wrap=True)
    raise typer.Exit(0 if result.status == "finished" else 130)


def _result(result: object) -> dict[str, object]:
    from outpace.training.run import TrainResult

    assert isinstance(result, TrainResult)
    comparison = result.comparison
    return {
        "run": result.run,
        "status": result.status,
        "steps": result.steps,
        "seconds": result.seconds,
        "comparison": None if comparison is None else comparison.to_dict(),
    }


def evaluate(
    model: Annotated[str, typer.Argument(help="A model (starter, smollm2, a folder, a hub id) or a run folder.")],
    tasks: Annotated[
        str, typer.Option(help="builtin, builtin:heldout, humaneval, mbpp:PATH, FILE.py, ...")
    ] = "builtin",
    samples: Annotated[int, typer.Option(min=1, help="Completions per task.")] = 8,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    max_completion_length: Annotated[int, typer.Option(min=1, help="Tokens.")] = 512,
    seed: Annotated[int, typer.Option(min=0)] = 3407,
    workers: Annotated[int | None, typer.Option(min=1, help="Scoring processes; default: one per core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the evaluation and its samples.")] = None,
    per_task: Annotated[bool, typer.Option("--per-task", help="Show each task too.")] = False,
    allow_weak_isolation: AllowWeak = False,
    as_json: AsJson = False,
) -> None:
    """Measure a model: is what it writes right, safe and fast? Every measure has its interval.

    Example: `outpace eval starter --tasks builtin:heldout --samples 8`
    """
    from outpace import evaluate as evaluation
    from outpace import tasks as task_sets
    from outpace.cli.output import counting
    from outpace.evaluate.subject import subject
    from outpace.grade import Grader, GradeSettings
    from outpace.report import render_evaluation
    from outpace.sandbox import SandboxSettings

    chosen = task_sets.load(tasks)
    settings = evaluation.EvalSettings(
        samples_per_task=samples,
        temperature=temperature,
        max_completion_length=max_completion_length,
        seed=seed,
        k_values=tuple(k for k in (1, 4, 8, 16, 64) if k <= samples),
    )
    named = subject(model)
    draw = _sampler_of(named)
    grading = GradeSettings(sandbox=SandboxSettings(allow_weak_isolation=allow_weak_isolation))
    with Grader(workers, grading) as grader, counting(f"evaluating {model}", quiet=as_json) as progress:
        result = evaluation.evaluate(draw, chosen, grader, settings, progress, label=model)
    if out is not None:
        evaluation.save(result, out, Path(model).name)
    if as_json:
        print_json(result.summary())
    else:
        console.print(render_evaluation(result, per_task=per_task))


def _sampler_of(named: object) -> "SampleCompletions":
    """Completions of a subject; a run's own chat settings hold for its checkpoints."""
    from outpace.training.environment import prepare_environment

    prepare_environment()
    from outpace import policy as policies
    from outpace.config import load_recipe
    from outpace.evaluate import from_policy
    from outpace.evaluate.subject import Subject
    from outpace.training.trainer import prompt_encoder

    assert isinstance(named, Subject)
    policy = policies.load(named.model)
    if named.run is None:
        return from_policy(policy)
    encode = prompt_encoder(policy, load_recipe(named.run.path / "recipe.yaml"))
    return from_policy(policy, prompt_of=lambda task: encode(task.prompt))


def report(
    runs: Annotated[list[Path], typer.Argument(help="One run folder, or several to compare.")],
    out: Annotated[Path | None, typer.Option(help="Folder for report.md and report.html.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write `report.md` and a self-contained `report.html` of one run, or of several side by side.

    Example: `outpace report runs/starter runs/smollm2`
    """
    from outpace.report import write

    markdown, html = write(runs, out)
    if as_json:
        print_json({"markdown": markdown, "html": html})
    else:
        console.print(f"{markdown}\n{html}", highlight=False, soft_wrap=True)


def watch(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    interval_s: Annotated[float, typer.Option(min=0.1, help="Seconds between looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show the state once and return.")] = False,
    as_json: AsJson = False,
) -> None:
    """Follow the figures of a run while it trains.

    Example: `outpace watch runs/starter`
    """
    from outpace.records import RunFolder
    from outpace.report.watch import watch as follow

    if as_json:
        metrics = RunFolder.open(run).metrics()
        print_json({"run": run, "records": len(metrics), "last": metrics[-1] if metrics else None})
        return
    follow(run, console, interval_s=interval_s, once=once)


def plan(
    recipe: RecipeFile,
    overrides: Overrides = None,
    memory: Annotated[float | None, typer.Option(min=1.0, help="GB of the card; the recipe is fitted to it.")] = None,
    gpu: Annotated[
        str, typer.Option(help="Whose speed the times are for: h200, h100, a100, l4, t4, rtx4090, ...")
    ] = "h200",
    as_json: AsJson = False,
) -> None:
    """Forecast a recipe's memory and time, and fit it to a card; no weights are loaded.

    Exit code 1 when it does not fit.

    Example: `outpace plan recipes/gpt-oss-20b.yaml --memory 12`
    """
    from outpace.config import load_recipe
    from outpace.policy.plan import plan as forecast

    result = forecast(load_recipe(recipe, overrides or ()), memory_GB=memory, gpu=gpu)
    if as_json:
        print_json(result.to_json())
    else:
        console.print(result)
    raise typer.Exit(1 if result.fits is False else 0)


def export(
    run: Annotated[str, typer.Argument(help="A run folder, or an adapter folder.")],
    out: Annotated[Path, typer.Option(help="Folder to write the model into.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    experts: Annotated[str, typer.Option(help="Packed experts: bfloat16, or back into mxfp4.")] = "bfloat16",
    as_json: AsJson = False,
) -> None:
    """Write a trained policy as a plain model folder, its adapters merged.

    Example: `outpace export runs/starter --out my-model`
    """
    from outpace import policy as policies
    from outpace.evaluate.subject import subject
    from outpace.policy.export import export as write_model

    if experts not in ("bfloat16", "mxfp4"):
        raise ConfigError(f"--experts {experts}: choose bfloat16 or mxfp4")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file: give a folder for the model")
    written = write_model(
        policies.load(subject(run).model, device="cpu"),
        out,
        overwrite=overwrite,
        experts="mxfp4" if experts == "mxfp4" else "bfloat16",
    )
    if as_json:
        print_json(written)
    else:
        merged = ", adapter merged" if written.merged_adapter else ""
        if written.rounding:
            console.print(written.rounding, highlight=False)
        console.print(f"{written.folder} ({written.size_bytes / 2**20:,.1f} MB{merged})", highlight=False)
