"""The sampler's loop: rows take slots, decode together, leave when they end, and others take their places.

On a GPU a whole step (forward, draw, bookkeeping) is one captured CUDA graph, and the host looks at which rows have
ended a few steps late, so that the GPU never waits for it. On a CPU steps run eagerly. When nothing is left to refill
with, the living rows are moved together and the batch shrinks.
"""

import gc
from collections import deque
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from outpace.errors import TrainingDiverged
from outpace.policy.decode import Decoder, prefill
from outpace.policy.draw import SamplingSettings, draw, row_uniforms
from outpace.policy.slots import CacheShape, PromptCache, Slots

_PREFILL_TOKENS = 16384  # prompts run through the model together, counted with padding
_LOOK_EVERY = 8  # GPU steps between two looks at which rows have ended
_SHRINK_BELOW = 0.75  # on a CPU, move rows together when fewer than this share of the batch lives
_LEAST_ROWS = 8  # on a GPU, no smaller batch is quicker
_CAPTURE_PAYS = 64  # steps that may have to follow before a graph (about 0.1 s) is captured for a smaller batch
_FIRST_SHRINK = 4  # an engine's first call may be its only one: it captures a batch only when smaller by this factor
_REACH_STEP = 32  # attention looks at positions in multiples of this


@dataclass(frozen=True, slots=True)
class Row:
    """One completion to be drawn: which prompt, and which member of its group."""

    prompt_index: int
    member: int


@dataclass(slots=True)
class Done:
    """One drawn completion: token ids with the end token, log-probabilities, and whether it ended by itself."""

    row: Row
    ids: list[int]
    logprobs: list[float]
    ended: bool


@dataclass(slots=True)
class Engine:
    """Slots, decoder and captured graphs for one model; kept between calls so that graphs are captured once."""

    network: Any
    decoder: Decoder
    slots: Slots
    settings: SamplingSettings
    eos_ids: tuple[int, ...]
    stamp: tuple[int, ...]
    """Addresses of the weights at capture; graphs are void when they move."""
    graphs: dict[int, "torch.cuda.CUDAGraph"] = field(default_factory=dict)
    calls: int = 0
    """How often `run` was called."""
    eos: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.eos = torch.tensor(self.eos_ids, device=self.slots.token_B.device)

    @property
    def on_gpu(self) -> bool:
        """Whether steps are captured as CUDA graphs."""
        return self.slots.token_B.is_cuda

    def run(
        self, prompts: Sequence[Sequence[int]], rows: Sequence[Row], seed: int, on_done: Callable[[Done], None]
    ) -> None:
        """Draw one completion per row; `on_done` is called as each ends, in the order in which they end."""
        self.calls += 1
        _Run(self, prompts, rows, seed, on_done).to_the_end()

    def step(self, rows: int, reach: int) -> None:
        """Decode one token for the first `rows` slots; rows that have ended stand still."""
        state, limit = self.slots, self.slots.max_new
        logits = self.decoder(state, rows, reach)
        alive, count = state.alive_B[:rows], state.count_B[:rows]
        column = count.clamp(max=limit - 1)[:, None]
        token, logprob, is_finite = draw(logits, state.uniforms_BN[:rows].gather(1, column)[:, 0], self.settings)
        state.broken.logical_or_((alive & ~is_finite).any())
        column = torch.where(alive, count, limit)[:, None]
        state.tokens_BN[:rows].scatter_(1, column, token[:, None])
        state.logprobs_BN[:rows].scatter_(1, column, logprob[:, None])
        is_end = (token[:, None] == self.eos).any(dim=1) & alive  # isin sorts many end tokens, which no graph can
        state.ended_B[:rows].logical_or_(is_end)
        state.token_B[:rows].copy_(torch.where(alive, token, state.token_B[:rows]))
        state.position_B[:rows].add_(alive)
        count.add_(alive)
        alive.logical_and_(~is_end & (count < limit))

    def advance(self, rows: int, reach: int) -> None:
        """Run `step`, on a GPU as a graph that is captured at its first use."""
        if not self.on_gpu:
            self.step(rows, reach)
            return
        if rows not in self.graphs:
            self.graphs[rows] = self._capture(rows)
        self.graphs[rows].replay()

    def _capture(self, rows: int) -> "torch.cuda.CUDAGraph":
        """Capture the step for `rows` slots; the state it ran over while warming up is put back."""
        state = self.slots
        saved = [tensor.clone() for tensor in [*state.per_row(), state.broken]]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.step(rows, state.positions)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with without_collector(), torch.cuda.graph(graph):
            self.step(rows, state.positions)
        for tensor, before in zip([*state.per_row(), state.broken], saved, strict=True):
            tensor.copy_(before)
        return graph


class _Run:
    """One call: which row sits where, which prompts are prefilled, what is still waiting."""

    def __init__(
        self,
        engine: Engine,
        prompts: Sequence[Sequence[int]],
        rows: Sequence[Row],
        seed: int,
        on_done: Callable[[Done], None],
    ) -> None:
        self.engine, self.prompts, self.seed, self.on_done = engine, prompts, seed, on_done
        self.waiting = deque(rows)
        self.rows_per_prompt: dict[int, int] = {}
        for row in rows:
            self.rows_per_prompt[row.prompt_index] = self.rows_per_prompt.get(row.prompt_index, 0) + 1
        self.prefilled: dict[int, PromptCache] = {}
        self.seated: list[Row | None] = [None] * min(len(rows), engine.slots.size)
        self.furthest = [0] * len(self.seated)
        """Upper bound of each slot's position."""

    def to_the_end(self) -> None:
        engine = self.engine
        engine.slots.alive_B.fill_(False)
        engine.slots.broken.fill_(False)
        self._fill()
        pending: tuple[Tensor, Any] | None = None
        while any(row is not None for row in self.seated):
            steps = _LOOK_EVERY if engine.on_gpu else 1
            for _ in range(steps):
                reach = min(engine.slots.positions, _round_up(max(self.furthest) + 1, _REACH_STEP))
                engine.advance(len(self.seated), reach)
                self.furthest = [place + 1 for place in self.furthest]
            if not engine.on_gpu:
                self._settle(engine.slots.alive_B[: len(self.seated)].tolist(), bool(engine.slots.broken))
                continue
            seen, pending = pending, self._look()
            if seen is not None:
                flags, event = seen
                event.synchronize()
                looked: list[bool] = flags.tolist()
                if self._settle(looked[:-1], looked[-1]):
                    pending = None  # it describes slots that have changed hands

    def _look(self) -> tuple[Tensor, Any]:
        """Start copying the rows' flags (and, last, `broken`) to the host without waiting for them."""
        slots = self.engine.slots
        flags = torch.cat((slots.alive_B[: len(self.seated)], slots.broken[None]))
        host = torch.empty(flags.shape, dtype=torch.bool, pin_memory=True)
        host.copy_(flags, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        return host, event

    def _settle(self, alive: list[bool], broken: bool) -> bool:
        """Hand out rows that have ended, refill or shrink; returns whether slots changed hands."""
        if broken:
            raise TrainingDiverged(
                "The policy's logits are not finite: its weights have diverged; go back a checkpoint."
            )
        ended = [slot for slot, row in enumerate(self.seated) if row is not None and not alive[slot]]
        if not ended:
            return False
        self._hand_out(ended)
        if self.waiting:
            self._fill()
        else:
            self._shrink()
        return True

    def _hand_out(self, ended: list[int]) -> None:
        slots = self.engine.slots
        at = torch.tensor(ended, device=slots.token_B.device)
        columns = torch.stack((slots.count_B[at], slots.ended_B[at].long())).tolist()
        tokens, logprobs = slots.tokens_BN[at].tolist(), slots.logprobs_BN[at].tolist()
        for place, slot in enumerate(ended):
            row, count = self.seated[slot], columns[0][place]
            assert row is not None
            self.seated[slot], self.furthest[slot] = None, 0
            self.on_done(Done(row, tokens[place][:count], logprobs[place][:count], bool(columns[1][place])))

    def _fill(self) -> None:
        """Seat waiting rows in free slots, prompt by prompt."""
        slots = self.engine.slots
        free = [slot for slot, row in enumerate(self.seated) if row is None]
        seats: dict[int, list[tuple[int, Row]]] = {}
        for slot in free[: len(self.waiting)]:
            row = self.waiting.popleft()
            seats.setdefault(row.prompt_index, []).append((slot, row))
        self._prefill([index for index in seats if index not in self.prefilled])
        for index, taken in seats.items():
            prompt = self.prefilled[index]
            uniforms = row_uniforms(self.seed, [(row.prompt_index, row.member) for _, row in taken], slots.max_new)
            at = torch.tensor([slot for slot, _ in taken], device=slots.token_B.device)
            slots.admit(at, prompt, torch.from_numpy(uniforms).to(slots.token_B.device))
            for slot, row in taken:
                self.seated[slot], self.furthest[slot] = row, prompt.length - 1
            self.rows_per_prompt[index] -= len(taken)
            if not self.rows_per_prompt[index]:
                del self.prefilled[index]

    def _prefill(self, indices: list[int]) -> None:
        batch: list[int] = []
        for index in [*sorted(indices, key=lambda index: len(self.prompts[index])), None]:
            tokens = 0 if index is None else (len(batch) + 1) * len(self.prompts[index])
            if batch and (index is None or tokens > _PREFILL_TOKENS):
                caches = prefill(self.engine.network, [self.prompts[i] for i in batch])
                self.prefilled.update(zip(batch, caches, strict=True))
                batch = []
            if index is not None:
                batch.append(index)

    def _shrink(self) -> None:
        living = [slot for slot, row in enumerate(self.seated) if row is not None]
        size = len(self.seated)
        if self.engine.on_gpu:
            factor = _FIRST_SHRINK if self.engine.calls == 1 else 1
            new = max(_LEAST_ROWS, -(-size // factor)) if self._most_steps_left() >= _CAPTURE_PAYS else 0
            smaller = smaller_batch(size, len(living), captured=self.engine.graphs, largest_new=new)
        else:
            smaller = len(living) if len(living) < _SHRINK_BELOW * size else size
        if smaller == size or not living:
            return
        self.engine.slots.compact(torch.tensor(living, device=self.engine.slots.token_B.device))
        spare = smaller - len(living)
        self.seated = [*(self.seated[slot] for slot in living), *([None] * spare)]
        self.furthest = [*(self.furthest[slot] for slot in living), *([0] * spare)]

    def _most_steps_left(self) -> int:
        """How many steps the rows may still take, were none to end by itself."""
        seated = [(self.furthest[slot], row) for slot, row in enumerate(self.seated) if row is not None]
        fewest = min((place + 1 - len(self.prompts[row.prompt_index]) for place, row in seated), default=0)
        return self.engine.slots.max_new - fewest


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect garbage now and none inside; afterwards the collector is on if it was before.

    A collection during a capture may free older graphs or GPU memory, and CUDA then calls the capture invalid. Not
    covered: what loses its last reference inside.
    """
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def smaller_batch(size: int, living: int, *, captured: Container[int], largest_new: int) -> int:
    """The smallest power of two that holds the `living` rows, of those below `size`; `size` when there is none.

    A batch without a graph counts only up to `largest_new` rows.
    """
    smaller = _LEAST_ROWS
    while smaller < size:
        if smaller >= living and (smaller <= largest_new or smaller in captured):
            return smaller
        smaller *= 2
    return size


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def build_slots(network: Any, *, size: int, positions: int, max_new: int) -> Slots:
    """Slots for `size` rows of up to `positions` tokens each, prompt included."""
    return Slots(CacheShape.of(network), size=size, positions=_round_up(positions, 64), max_new=max_new)
