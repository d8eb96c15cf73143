"""What the trainer calls while it trains: stop before weights are poisoned, save so that a kill does no harm, record.

Only public callback events are used. Order matters: divergence is looked for before the optimiser moves a weight, and
a checkpoint is marked complete only after the trainer has written all of it.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from outpace.errors import TrainingDiverged
from outpace.evaluate.memory import reset_cuda_peak
from outpace.policy.mxfp4.host_checkpoint import keep_on_host
from outpace.records import RunFolder, mark_complete
from outpace.records.checkpoints import folder_bytes, list_checkpoints
from outpace.training.adapters import GradientReach
from outpace.training.interrupts import Interrupts
from outpace.training.memory import peak_memory
from outpace.training.phases import PhaseClock

_FP16_SKIPS = 8
"""With fp16 the loss scale is found by overflowing: this many overflows in a row are normal, more are not."""


class StopOnDivergence(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Raises TrainingDiverged before an update with a NaN or infinite gradient is applied or bad weights are saved."""

    def __init__(self, reach: GradientReach | None) -> None:
        self._reach = reach
        self._overflows = 0

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look at every gradient of the update that is about to be applied."""
        named = [(name, p.grad) for name, p in kwargs["model"].named_parameters() if p.grad is not None]
        bad = _not_finite(named)
        self._overflows = self._overflows + 1 if bad else 0
        if bad and not (args.fp16 and self._overflows <= _FP16_SKIPS):
            raise TrainingDiverged(_sentence(state.global_step + 1, "gradient", bad, args))
        if self._reach is not None and not bad:
            self._reach.observe(named)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Before a checkpoint: every trained weight must be finite."""
        if control.should_save:
            named = [(name, p.detach()) for name, p in kwargs["model"].named_parameters() if p.requires_grad]
            bad = _not_finite(named)
            if bad:
                raise TrainingDiverged(_sentence(state.global_step, "weight", bad, args))

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """The logged loss must be finite, should one have slipped past the gradients."""
        loss = (logs or {}).get("loss")
        if isinstance(loss, float) and not math.isfinite(loss):
            raise TrainingDiverged(_sentence(state.global_step, "loss", [], args))


class KeepOnHost(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Once the trainer has set up that activations are computed twice: what is kept of them waits on the host.

    `tokens_at_once` is the most tokens whose experts are computed together; None: all.
    """

    def __init__(self, tokens_at_once: int | None = None) -> None:
        self._tokens_at_once = tokens_at_once

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Nothing happens where activations are not computed twice."""
        keep_on_host(kwargs["model"], self._tokens_at_once)


class SaveSafely(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Checkpoints on generation boundaries, with space looked for first and a mark put last; stops when asked to."""

    def __init__(self, run: RunFolder, interrupts: Interrupts, updates_per_generation: int, is_main: bool) -> None:
        self._run, self._interrupts = run, interrupts
        self._period, self._is_main = updates_per_generation, is_main

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Decide about stopping and saving."""
        if _any_process(self._interrupts.requested is not None) and state.global_step % self._period == 0:
            control.should_save = control.should_log = control.should_training_stop = True
        if control.should_save:
            if self._is_main:
                self._run.require_space(self._needed_bytes(kwargs["model"]))
            self._interrupts.begin_writing()
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Mark the checkpoint complete when every process has written its part."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.barrier()
        if self._is_main:
            mark_complete(Path(args.output_dir) / f"checkpoint-{state.global_step}")
        self._interrupts.end_writing()

    def _needed_bytes(self, model: Any) -> int:
        known = list_checkpoints(self._run.path)
        if known:
            return folder_bytes(known[-1].path)
        trained = [p for p in model.parameters() if p.requires_grad]
        return sum(p.numel() * (p.element_size() + 8) for p in trained)  # weights, and two float32 moments


class Recorder(TrainerCallback):  # type: ignore[misc]  # transformers is untyped
    """Writes `metrics.jsonl`: the phases and the peak memory of each step; hands each record on to who shows it."""

    def __init__(self, clock: PhaseClock, record: Callable[[int, dict[str, Any]], None]) -> None:
        self._clock, self._record = clock, record
        self._measured: dict[str, float] = {}

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A step starts with its first micro-batch."""
        self._clock.step_began()
        reset_cuda_peak()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The optimiser has moved the weights."""
        self._measured = self._clock.take() | peak_memory()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        """Record one logged step; the summary at the end of training is no step."""
        if not logs or "train_runtime" in logs:
            return
        self._record(int(state.global_step), tidy(logs) | self._measured)


def tidy(logs: Mapping[str, Any]) -> dict[str, Any]:
    """Logged figures under lasting names; `rewards/<name>/mean` and `/std` are components before their weights."""
    own = {key.removeprefix("components/"): value for key, value in logs.items() if key.startswith("components/")}
    kept = {
        key: value
        for key, value in logs.items()
        if not key.startswith(("components/", "rewards/") if own else "components/")
        and key not in ("step", "epoch", "total_flos")
    }
    return {key: _number(value) for key, value in (kept | {f"rewards/{name}": v for name, v in own.items()}).items()}


def _number(value: Any) -> Any:
    """Trackers' strings (`'1e-05'`) as numbers; what is not finite as None."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _not_finite(named: list[tuple[str, torch.Tensor]]) -> list[str]:
    """Names of the tensors that hold NaN or infinity; one pass over all, names only when something is wrong."""
    if not named:
        return []
    device = named[0][1].device
    norms = [torch.linalg.vector_norm(tensor, dtype=torch.float32).to(device) for _, tensor in named]
    if bool(torch.isfinite(torch.stack(norms)).all()):
        return []
    return [name for name, tensor in named if not bool(torch.isfinite(tensor).all())]


def _sentence(step: int, what: str, names: list[str], args: Any) -> str:
    precision = "float16" if args.fp16 else "bfloat16" if args.bf16 else "float32"
    where = f" of {names[0]}" if names else ""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (
        f"step {step}: the {what}{where}{more} is NaN or infinite ({precision}); nothing was saved after the last "
        "checkpoint: resume from it with a lower learning_rate, a lower max_grad_norm or another precision"
    )


def _any_process(flag: bool) -> bool:
    """Whether the flag is set in any of the processes that train together."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return flag
    device = torch.device("cuda") if torch.distributed.get_backend() == "nccl" else torch.device("cpu")
    shared = torch.tensor([int(flag)], device=device)
    torch.distributed.all_reduce(shared, op=torch.distributed.ReduceOp.MAX)
    return bool(shared.item())
