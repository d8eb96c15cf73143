"""What must be set before torch, transformers and TRL are imported, and what the launcher says about processes."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

_SETTINGS = {
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",  # tokenizer threads and processes started later deadlock each other
    "TRL_EXPERIMENTAL_SILENCE": "1",  # rollout_func is experimental; a test of ours notices when it moves
    "TRANSFORMERS_VERBOSITY": "error",
    "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
}


_SMALL_CARD = {"CUBLAS_WORKSPACE_CONFIG": ":4096:2:16:8"}
"""8 MB a stream for cuBLAS, as on consumer cards, where a Hopper card would take 32 MB for each of four streams."""


def prepare_environment(*, small_card: bool = False) -> None:
    """Set the variables that only work before the heavy imports; what the user has set stays."""
    for name, value in (_SETTINGS | (_SMALL_CARD if small_card else {})).items():
        os.environ.setdefault(name, value)


def processes() -> int:
    """How many processes train together, as torchrun says; 1 without it."""
    return _number("WORLD_SIZE", 1)


def rank() -> int:
    """Which of them this is; 0 writes the run folder."""
    return _number("RANK", 0)


def local_rank() -> int:
    """Which one on this machine: the index of its GPU."""
    return _number("LOCAL_RANK", 0)


@contextmanager
def main_process_first() -> Iterator[None]:
    """Inside, the process that writes the run folder goes first and the others wait for it; nothing with one process.

    The first call lets the processes find each other; they wait up to two hours, as long as an evaluation may take.
    """
    if processes() == 1:
        yield
        return
    from accelerate import PartialState

    with PartialState(timeout=timedelta(hours=2)).main_process_first():
        yield


def leave_processes() -> None:
    """Part from the other processes after the last common step; nothing with one process.

    A process that ends while its communication threads still run is now and then aborted: a thread that gives back a
    tensor then waits for an interpreter that is gone.
    """
    if processes() == 1:
        return
    from accelerate import PartialState

    gc.collect()  # what trained holds the group through cycles; its threads end with the last who does
    PartialState().destroy_process_group()


def _number(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        return default
