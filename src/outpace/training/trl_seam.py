"""The one place that relies on what TRL and transformers do not promise; `tests/training/test_trl_seam.py` guards it.

- `rollout_func` of GRPOTrainer is experimental: its call, its keys, and that extra fields reach the rewards.
- `create_model_card` writes a README into the run folder at every save; ours does nothing.
- `_get_per_token_logps_and_entropies` of GRPOTrainer and RLOOTrainer computes log-probabilities, from ids and a mask.
- With beta above 0 and every weight trained, the reference model is loaded again from `config.name_or_path`.
- Prompts come in the order of the rows when `shuffle_dataset` is off, each repeated `num_generations` times.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

from outpace.policy import Policy
from outpace.training.trimming import without_padding

TRAINERS = {"grpo": "GRPOTrainer", "rloo": "RLOOTrainer", "sft": "SFTTrainer", "dpo": "DPOTrainer"}
LOGPS = "_get_per_token_logps_and_entropies"
CONFIGS = {"grpo": "GRPOConfig", "rloo": "RLOOConfig", "sft": "SFTConfig", "dpo": "DPOConfig"}


@cache
def trainer_class(method: str) -> Any:
    """TRL's trainer for a method, without model cards."""
    import trl

    base = getattr(trl, TRAINERS[method])

    def create_model_card(self: Any, *args: Any, **kwargs: Any) -> None:
        """The run folder has a report of its own."""

    members: dict[str, Any] = {"create_model_card": create_model_card, "__doc__": base.__doc__}
    if hasattr(base, LOGPS):
        members[LOGPS] = _without_padding(getattr(base, LOGPS))
    return type(TRAINERS[method], (base,), members)


def _without_padding(padded: Any) -> Any:
    """TRL's log-probabilities, from batches cut to the length of their rows, where that is safe."""

    def logps_and_entropies(
        self: Any, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *more: Any, **options: Any
    ) -> Any:
        options |= zip(("batch_size", "compute_entropy", "compute_aux_loss"), more, strict=False)

        def compute(ids: Any, mask: Any, keep: int) -> Any:
            return padded(self, model, ids, mask, keep, **options)

        asked = {name for name, value in options.items() if value is not None and value is not False}
        if self.accelerator.num_processes > 1 or asked - {"batch_size", "compute_entropy"}:  # images, or MoE's loss
            return compute(input_ids, attention_mask, logits_to_keep)
        return *without_padding(lambda *given: compute(*given)[:2], input_ids, attention_mask, logits_to_keep), None

    return logps_and_entropies


def config_class(method: str) -> Any:
    """TRL's configuration class for a method."""
    import trl

    return getattr(trl, CONFIGS[method])


@contextlib.contextmanager
def loadable_again(policy: Policy) -> Iterator[None]:
    """Inside, the model's configuration names the folder that it can be loaded from once more."""
    config = policy.model.config
    name = config.name_or_path
    if policy.folder is not None:
        config.name_or_path = str(policy.folder)
    try:
        yield
    finally:
        config.name_or_path = name


@contextlib.contextmanager
def quiet_libraries() -> Iterator[None]:
    """Inside, TRL, transformers and datasets print no bars, notes or notices of what they will rename."""
    import datasets

    from outpace.policy.quiet import quiet_transformers

    were_off = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    notes = logging.getLogger("trl")
    level = notes.level
    notes.setLevel(logging.ERROR)
    with quiet_transformers(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"(trl|transformers)\.")
        try:
            yield
        finally:
            notes.setLevel(level)
            if not were_off:
                datasets.enable_progress_bars()


def remove_printers(trainer: Any) -> None:
    """Remove the callbacks that print."""
    from transformers import PrinterCallback, ProgressCallback

    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
