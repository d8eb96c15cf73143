"""Recipe -> trainer: the dataset, the rewards, the rollout and the callbacks, put together for one TRL trainer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from outpace.config import BatchPlan, Recipe
from outpace.errors import ConfigError
from outpace.evaluate import from_policy
from outpace.policy import Policy, SamplingSettings
from outpace.policy.merged import base_model
from outpace.policy.mxfp4 import is_packed
from outpace.records import RunFolder
from outpace.reward import RewardSet
from outpace.schema import Message, Task
from outpace.training.adapters import HOST_ADAMW, GradientReach, adapt, check_targets, family_in
from outpace.training.callbacks import KeepOnHost, Recorder, SaveSafely, StopOnDivergence
from outpace.training.completions import CompletionReader
from outpace.training.environment import rank
from outpace.training.interrupts import Interrupts
from outpace.training.phases import PhaseClock
from outpace.training.precision import Precision, checkpoint_activations
from outpace.training.rewards import Grades, RewardBridge
from outpace.training.rollout import StreamedRollout
from outpace.training.schedule import by_prompt, training_rows
from outpace.training.settings import config_arguments
from outpace.training.supervised import training_data
from outpace.training.trl_seam import config_class, loadable_again, remove_printers, trainer_class


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a trainer is put together from."""

    recipe: Recipe
    run: RunFolder
    tasks: Sequence[Task]
    policy: Policy
    grader: Grades
    rewards: RewardSet
    plan: BatchPlan
    precision: Precision
    sampler: str
    interrupts: Interrupts
    record: Callable[[int, dict[str, Any]], None]
    warn: Callable[[str], None]


def build_trainer(parts: Parts) -> Any:
    """A TRL trainer that is ready to train.

    Raises:
        ConfigError: prompts are too long, or LoRA targets match nothing.
    """
    recipe, clock = parts.recipe, PhaseClock()
    tasks = _short_enough(parts)
    bridge = _bridge(parts, tasks, clock) if recipe.method in ("grpo", "rloo") else None
    arguments = config_arguments(
        recipe,
        parts.run.path,
        parts.precision,
        checkpointing=checkpoint_activations(recipe, parts.policy.model),
        sampler=parts.sampler,
        weights=bridge.weights() if bridge else [],
    )
    options: dict[str, Any] = {}
    if bridge is not None:
        options["reward_funcs"] = bridge.functions()
        if parts.sampler == "group":
            options["rollout_func"] = _rollout(parts, tasks, bridge.reader, clock)
    model, peft_config = adapt(recipe, parts.policy.model)
    if recipe.optim == HOST_ADAMW:
        options["optimizers"] = (host_adamw(recipe, model), None)
    with loadable_again(parts.policy):
        trainer = trainer_class(recipe.method)(
            model=model,
            args=config_class(recipe.method)(**arguments),
            train_dataset=_dataset(parts, tasks),
            processing_class=parts.policy.tokenizer,
            peft_config=peft_config,
            **options,
        )
    remove_printers(trainer)
    check_targets(recipe, trainer.model)
    trained = [name for name, p in trainer.model.named_parameters() if p.requires_grad]
    for callback in (
        StopOnDivergence(GradientReach(trained, family_in(trainer.model)) if recipe.use_peft else None),
        SaveSafely(parts.run, parts.interrupts, parts.plan.updates_per_generation, is_main=rank() == 0),
        Recorder(clock, parts.record),
    ):
        trainer.add_callback(callback)
    if is_packed(trainer.model):
        trainer.add_callback(KeepOnHost(base_model(trainer.model).storage.tokens_at_once))
    return trainer


def host_adamw(recipe: Recipe, model: Any) -> Any:
    """AdamW with float32 weights and moments on the host, over the adapters that are attached already.

    Raises:
        ConfigError: the adapters are TRL's to attach, so there is nothing to optimise yet.
    """
    from outpace.policy.mxfp4.host_adam import HostAdamW

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not (recipe.use_peft and hasattr(model, "peft_config")):
        raise ConfigError("optim=adamw_host is for LoRA on packed gpt-oss: use optim=adamw_torch here")
    return HostAdamW(
        trained,
        lr=recipe.learning_rate,
        betas=(recipe.adam_beta1, recipe.adam_beta2),
        weight_decay=recipe.weight_decay,
    )


def prompt_encoder(policy: Policy, recipe: Recipe) -> Callable[[Sequence[Message]], tuple[int, ...]]:
    """From messages to token ids by the chat template, with the recipe's `chat_template_kwargs`."""

    def encode(prompt: Sequence[Message]) -> tuple[int, ...]:
        ids = policy.tokenizer.apply_chat_template(
            [dict(message) for message in prompt],
            add_generation_prompt=True,
            return_dict=True,
            **recipe.chat_template_kwargs,
        )["input_ids"]
        return tuple(int(token) for token in ids)

    return encode


def completion_reader(policy: Policy, recipe: Recipe) -> CompletionReader:
    """The reader of this policy's completions."""
    return CompletionReader.of(
        policy.tokenizer, policy.eos_ids, end_token=recipe.reasoning_end_token, split=recipe.reasoning == "auto"
    )


def _short_enough(parts: Parts) -> list[Task]:
    """The tasks whose prompt is within `max_prompt_length`; nothing is cut."""
    limit = parts.recipe.max_prompt_length
    if limit is None:
        return list(parts.tasks)
    encode = prompt_encoder(parts.policy, parts.recipe)
    lengths = {task.id: len(encode(task.prompt)) for task in parts.tasks}
    kept = [task for task in parts.tasks if lengths[task.id] <= limit]
    if not kept:
        raise ConfigError(
            f"every prompt is longer than max_prompt_length={limit} (the shortest has {min(lengths.values())} tokens)"
        )
    return kept


def _dataset(parts: Parts, tasks: Sequence[Task]) -> Any:
    from datasets import Dataset

    recipe = parts.recipe
    if recipe.method in ("grpo", "rloo"):
        return Dataset.from_list(training_rows(tasks, recipe, parts.plan))
    encode = prompt_encoder(parts.policy, recipe)
    draw = from_policy(parts.policy, prompt_of=lambda task: encode(task.prompt))
    return Dataset.from_list(training_data(recipe, tasks, draw, parts.grader, parts.run))


def _bridge(parts: Parts, tasks: Sequence[Task], clock: PhaseClock) -> RewardBridge:
    part = rank()
    return RewardBridge(
        rewards=parts.rewards,
        grader=parts.grader,
        tasks={task.id: task for task in tasks},
        reader=completion_reader(parts.policy, parts.recipe),
        num_generations=parts.recipe.num_generations,
        clock=clock,
        separate=parts.recipe.multi_objective_aggregation == "normalize_then_sum",
        stop_share=parts.recipe.stop_infrastructure_share,
        warn=parts.warn,
        save_rows=lambda step, rows: parts.run.write_samples(step, rows, part=part),
    )


def _rollout(parts: Parts, tasks: Sequence[Task], reader: CompletionReader, clock: PhaseClock) -> StreamedRollout:
    recipe = parts.recipe
    return StreamedRollout(
        policy=parts.policy,
        grader=parts.grader,
        tasks=by_prompt(tasks),
        reader=reader,
        settings=SamplingSettings(
            max_new_tokens=recipe.max_completion_length,
            temperature=recipe.temperature,
            top_p=recipe.top_p,
            top_k=recipe.top_k,
            min_p=recipe.min_p or 0.0,
        ),
        encode=prompt_encoder(parts.policy, recipe),
        num_generations=recipe.num_generations,
        seed=recipe.seed,
        clock=clock,
        part=rank(),
        frees_memory=recipe.card_GB is not None,
    )
