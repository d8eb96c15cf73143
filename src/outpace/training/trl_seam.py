"""The one place that relies on what TRL and transformers do not promise; `tests/training/test_trl_seam.py` guards it.

- `rollout_func` of GRPOTrainer is experimental: its call, its keys, and that extra fields reach the rewards.
- `create_model_card` writes a README into the run folder at every save; ours does nothing.
- `_get_per_token_logps_and_entropies` of GRPOTrainer and RLOOTrainer computes log-probabilities, from ids and a mask,
  by calling the model with them, and reads the head in `_CHUNKED_LOGPROB_CHUNK_SIZE` rows at a time.
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
from outpace.policy.lean_forward import lean
from outpace.policy.merged import base_model
from outpace.training.shared_prompts import SharedPrompts
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
    """TRL's log-probabilities, from prompts computed once and rows cut to their length, where that is safe."""

    def logps_and_entropies(
        self: Any, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *more: Any, **options: Any
    ) -> Any:
        options |= zip(("batch_size", "compute_entropy", "compute_aux_loss"), more, strict=False)
        asked = {name for name, value in options.items() if value is not None and value is not False}
        if self.accelerator.num_processes > 1 or asked - {"batch_size", "compute_entropy"}:  # images, or MoE's loss
            return padded(self, model, input_ids, attention_mask, logits_to_keep, **options)
        most_rows = options.pop("batch_size", None)
        unwrapped = self.accelerator.unwrap_model(model)
        with (
            self.accelerator.autocast(),
            _inputs_as_they_are(unwrapped),
            _tiles_that_fit(unwrapped),
            lean(unwrapped),
        ):
            prompt_columns = input_ids.size(1) - logits_to_keep
            shared = SharedPrompts.of(unwrapped, input_ids, attention_mask, prompt_columns)

            def compute(rows: list[int], columns: slice, keep: int) -> Any:
                asked = model if shared is None else shared.before(model, rows)
                return padded(self, asked, input_ids[rows, columns], attention_mask[rows, columns], keep, **options)[:2]

            prompt_R = None if shared is None else shared.prompt_R
            found = without_padding(compute, attention_mask, logits_to_keep, prompt_R=prompt_R, most_rows=most_rows)
        return *found, None

    return logps_and_entropies


def _inputs_as_they_are(model: Any) -> contextlib.AbstractContextManager[None]:
    """Inside, under autocast, PEFT widens no activation to the adapters' float32, only to be narrowed again."""
    import torch
    from peft.helpers import disable_input_dtype_casting

    device = next(model.parameters()).device.type
    return disable_input_dtype_casting(model, active=torch.is_autocast_enabled(device))  # type: ignore[no-any-return]


@contextlib.contextmanager
def _tiles_that_fit(model: Any) -> Iterator[None]:
    """Inside, a head in 8 bits is read in parts of 47 MB (at gpt-oss's width), where TRL's tiles make two of 189 MB."""
    from trl.trainer import utils

    from outpace.policy.mxfp4.compact import ROWS_AT_ONCE, Int8Linear

    usual = utils._CHUNKED_LOGPROB_CHUNK_SIZE
    if isinstance(base_model(model).get_output_embeddings(), Int8Linear):
        utils._CHUNKED_LOGPROB_CHUNK_SIZE = ROWS_AT_ONCE
    try:
        yield
    finally:
        utils._CHUNKED_LOGPROB_CHUNK_SIZE = usual


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
