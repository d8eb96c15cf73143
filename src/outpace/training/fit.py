"""Train to the last step: resume what is there, answer lack of memory with smaller micro-batches, say what failed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from outpace.config import Recipe, plan_batches
from outpace.errors import InfrastructureError, OutpaceError, RunFolderError
from outpace.policy import Policy
from outpace.policy.sampler import forget
from outpace.records import RunFolder
from outpace.records.checkpoints import remove_incomplete
from outpace.training import provenance
from outpace.training.adapters import describe_trained, weight_counts
from outpace.training.environment import main_process_first, rank
from outpace.training.interrupts import Interrupted
from outpace.training.memory import free_memory, is_out_of_memory, with_smaller_batches
from outpace.training.trainer import Parts, build_trainer
from outpace.training.trl_seam import quiet_libraries


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What training came to."""

    policy: Policy
    steps: int
    interrupted: bool


def fit(parts: Parts, reload: Callable[[], Policy], say: Callable[[str], None]) -> Fitted:
    """Train until `max_steps` or until asked to stop.

    Args:
        parts: what the trainer is made of; the policy's weights are those before any training.
        reload: loads the untrained policy again, for a second attempt with smaller micro-batches.
        say: shows a line to the user.

    Raises:
        TrainingDiverged, RunFolderError, InfrastructureError: training cannot go on; the last checkpoint is intact.
    """
    while True:
        try:
            return _attempt(parts, say)
        except (RuntimeError, MemoryError) as error:
            if isinstance(error, OutpaceError) or not is_out_of_memory(error):
                raise
            smaller = _smaller(parts.recipe, error)
        # outside the handler: the traceback holds the failed batch's tensors
        say(
            f"out of memory: per_device_train_batch_size={smaller.per_device_train_batch_size}, "
            f"gradient_accumulation_steps={smaller.gradient_accumulation_steps} from here on; updates stay the same"
        )
        free_memory()
        plan = plan_batches(smaller, parts.plan.processes)
        parts = replace(parts, recipe=smaller, plan=plan, policy=reload())


def _attempt(parts: Parts, say: Callable[[str], None]) -> Fitted:
    with main_process_first():
        checkpoint = parts.run.checkpoint(say)
        done = checkpoint.step if checkpoint else 0
        if rank() == 0:
            parts.run.rewind(done)
            if done < parts.recipe.max_steps:
                parts.run.discard("evaluation-after.json")  # of a run that has since been extended
    with quiet_libraries():
        trainer = build_trainer(parts)
    for line in describe_trained(trainer.model):
        say(line)
    if rank() == 0:
        provenance.add_weights(parts.run, weight_counts(trainer.model))
    if checkpoint is not None:
        say(f"resuming from step {done} of {parts.recipe.max_steps}")
    try:
        with quiet_libraries(), parts.interrupts.until_step_ends():
            trainer.train(resume_from_checkpoint=str(checkpoint.path) if checkpoint else None)
    except (OutpaceError, Interrupted):
        raise
    except Exception as error:
        _explain_failed_write(parts.run, trainer, error)
        raise
    finally:
        forget(parts.policy)
    steps = int(trainer.state.global_step)
    interrupted = parts.interrupts.requested is not None and steps < parts.recipe.max_steps
    if not interrupted and steps != parts.recipe.max_steps:
        raise InfrastructureError(
            f"training ended after {steps} of {parts.recipe.max_steps} steps without a reason; run the same command "
            "again to resume, or --fresh to start over"
        )
    return Fitted(policy=_trained(parts.policy, trainer), steps=steps, interrupted=interrupted)


def _trained(policy: Policy, trainer: Any) -> Policy:
    model = trainer.accelerator.unwrap_model(trainer.model)
    model.eval()
    return replace(policy, model=model)


def _explain_failed_write(run: RunFolder, trainer: Any, error: Exception) -> None:
    """Raise RunFolderError when `error` broke off the writing of a checkpoint; what was begun is removed."""
    if not trainer.control.should_save:
        return
    remove_incomplete(run.path)
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    raise RunFolderError(
        f"the checkpoint of step {trainer.state.global_step} could not be written ({reason}): free some space and run "
        "the same command again; the checkpoints before it are intact"
    ) from error


def _smaller(recipe: Recipe, error: BaseException) -> Recipe:
    smaller = with_smaller_batches(recipe)
    if smaller is None:
        raise InfrastructureError(
            f"out of memory with per_device_train_batch_size={recipe.per_device_train_batch_size}, and a smaller one "
            "would change the update: lower max_completion_length or num_generations, or set use_peft=true"
        ) from error
    return smaller
