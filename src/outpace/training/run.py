"""The product on one screen: load, evaluate, train, evaluate.

Every step of it is done once per run and found again when the run is resumed. Reports are written by the caller.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from outpace import policy as policies
from outpace import reward, tasks
from outpace.config import Recipe, plan_batches
from outpace.evaluate import Comparison, Evaluation, compare, evaluate, from_policy, save
from outpace.grade import Grader, GradeSettings
from outpace.policy import Policy
from outpace.records import RunFolder
from outpace.sandbox import SandboxSettings
from outpace.schema import Task
from outpace.training import provenance
from outpace.training.choice import choose_sampler
from outpace.training.early_warnings import EarlyWarnings
from outpace.training.environment import leave_processes, processes, rank
from outpace.training.evaluations import eval_settings, load_task_sets, stored
from outpace.training.fit import Fitted, fit
from outpace.training.interrupts import Interrupts
from outpace.training.precision import Precision, choose_precision, loading_options, sound_attention
from outpace.training.progress import RunProgress
from outpace.training.resume import refuse_other_recipe
from outpace.training.rewards import doubt_about
from outpace.training.trainer import Parts, prompt_encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult:
    """What a run came to; `before`, `after` and `comparison` are None where the recipe leaves evaluations out."""

    run: Path
    status: str
    """`finished`, or `interrupted`: the same command resumes."""
    steps: int
    seconds: float
    before: Evaluation | None
    after: Evaluation | None
    comparison: Comparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """Where the real parts come from; a test hands in others."""

    load_tasks: Callable[[str], list[Task]] = tasks.load
    load_policy: Callable[..., Policy] = policies.load
    make_grader: Callable[[Recipe], Grader] = lambda recipe: Grader(recipe.workers, grade_settings(recipe))


def train(recipe: Recipe, run: RunFolder, console: Console, collaborators: Collaborators | None = None) -> TrainResult:
    """Evaluate, train and evaluate again, in `run`; what an earlier call has done is not done again.

    Raises:
        UserError: the recipe, a task, a model, a reward or the run folder cannot be used (one sentence).
        InfrastructureError: we failed, or training diverged; the last checkpoint is intact.
        Interrupted: a second signal, or one outside training; the same command resumes.
    """
    parts_of = collaborators or Collaborators()
    began = time.monotonic()
    plan, sampler = plan_batches(recipe, processes()), choose_sampler(recipe)
    train_tasks, heldout_tasks = load_task_sets(recipe, parts_of.load_tasks)
    with (
        provenance.held(run, is_main=rank() == 0),
        RunProgress(console if rank() == 0 else Console(quiet=True)) as progress,
        Interrupts(progress.say) as interrupts,
        reward.build(recipe.rewards) as rewards,
        parts_of.make_grader(recipe) as grader,
        sound_attention(),
    ):
        if rank() == 0:
            refuse_other_recipe(run, recipe)
        rewards.check()
        if doubt := doubt_about(rewards):
            progress.warn(doubt)
        precision = choose_precision(recipe)
        policy = load_policy(recipe, precision, parts_of)
        provenance.write(run, recipe, policy, grader, precision, sampler)
        progress.say(f"{run.path}: {len(train_tasks)} tasks, sampler {sampler.name} ({sampler.why})")

        def measured(name: str, policy: Policy) -> Evaluation | None:
            return measure(recipe, run, name, policy, [*train_tasks, *heldout_tasks], grader, progress)

        before = measured("before", policy)
        progress.begin("training", 0, recipe.max_steps)
        warnings = EarlyWarnings(recipe)

        def record(step: int, figures: dict[str, object]) -> None:
            noticed = list(warnings.observe(step, figures))
            if rank() == 0:
                run.append_metrics({"step": step, **figures, **({"warnings": noticed} if noticed else {})})
            progress.step(step, figures)
            for warning in noticed:
                progress.warn(warning)

        fitted: Fitted = fit(
            Parts(
                recipe=recipe,
                run=run,
                tasks=train_tasks,
                policy=policy,
                grader=grader,
                rewards=rewards,
                plan=plan,
                precision=precision,
                sampler=sampler.name,
                interrupts=interrupts,
                record=record,
                warn=progress.warn,
            ),
            reload=lambda: load_policy(recipe, precision, parts_of),
            say=progress.say,
        )
        leave_processes()
        after = None if fitted.interrupted else measured("after", fitted.policy)
    return TrainResult(
        run=run.path,
        status="interrupted" if fitted.interrupted else "finished",
        steps=fitted.steps,
        seconds=time.monotonic() - began,
        before=before,
        after=after,
        comparison=compare(before, after) if before and after else None,
    )


def measure(
    recipe: Recipe,
    run: RunFolder,
    name: str,
    policy: Policy,
    chosen: Sequence[Task],
    grader: Grader,
    progress: RunProgress,
) -> Evaluation | None:
    """Evaluate the policy once per run; None when the recipe leaves evaluations out."""
    if recipe.eval_samples == 0 or rank() != 0:
        return None
    known = stored(run, name)
    if known is not None:
        return known
    settings = eval_settings(recipe)
    encode = prompt_encoder(policy, recipe)
    progress.begin(f"evaluating {name}", 0, len(chosen) * settings.samples_per_task)
    draw = from_policy(policy, prompt_of=lambda task: encode(task.prompt))
    result = evaluate(draw, chosen, grader, settings, lambda done, total: progress.advance(done), label=name)
    save(result, run.path, name)
    return result


def load_policy(recipe: Recipe, precision: Precision, collaborators: Collaborators) -> Policy:
    """The untrained policy in the run's precision; `options` are transformers' own, passed only when asked for."""
    options = loading_options(recipe, precision)
    extra: dict[str, Any] = {"options": options} if options else {}
    if recipe.card_GB is not None:
        extra["card_GB"] = recipe.card_GB
    return collaborators.load_policy(recipe.model, dtype=precision.dtype, device=precision.device, **extra)


def grade_settings(recipe: Recipe) -> GradeSettings:
    """How this run's completions are graded; without a GPU, sampling needs the cores that early timing would take."""
    import torch

    return GradeSettings(
        time_early=torch.cuda.is_available(),
        static_preset=recipe.static_check,
        sandbox=SandboxSettings(allow_weak_isolation=recipe.allow_weak_isolation),
    )
