"""Log-probabilities of given tokens without the (tokens, vocabulary) logits: the head is read a part at a time.

TRL's trainers do the same by a kernel of theirs through `head.weight[start:end]`; this needs neither TRL nor Triton.
Not covered: gradients of the head, which is frozen.
"""

from typing import Any

import torch
from torch import Tensor

_ROWS_AT_ONCE = 8192


def token_logprobs(hidden: Tensor, weight: Tensor, ids: Tensor, temperature: float = 1.0) -> Tensor:
    """log softmax(hidden weight^T / temperature) at `ids`.

    Args:
        hidden: (N, d).
        weight: (V, d), or what gives rows of it when sliced (`Int8Weight`).
        ids: (N,).
        temperature: divides the logits.

    Returns:
        (N,) float32.
    """
    return _TokenLogprobs.apply(hidden, weight, ids, temperature)  # type: ignore[no-untyped-call, no-any-return]


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, ids: Tensor, temperature: float) -> Tensor:
        ctx.weight, ctx.temperature = weight, temperature
        total = hidden.new_full(hidden.shape[:1], float("-inf"), dtype=torch.float32)
        chosen = torch.zeros_like(total)
        for start in range(0, weight.shape[0], _ROWS_AT_ONCE):
            logits = _logits(hidden, weight, start, temperature)
            total = torch.logaddexp(total, logits.logsumexp(dim=1))
            place = ids - start
            is_here = (place >= 0) & (place < logits.shape[1])
            found = logits.gather(1, place.clamp(0, logits.shape[1] - 1)[:, None])[:, 0]
            chosen = torch.where(is_here, found, chosen)
        ctx.save_for_backward(hidden, ids, total)
        return chosen - total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        hidden, ids, total = ctx.saved_tensors
        result = torch.zeros_like(hidden, dtype=torch.float32)
        for start in range(0, ctx.weight.shape[0], _ROWS_AT_ONCE):
            share = _logits(hidden, ctx.weight, start, ctx.temperature).sub_(total[:, None]).exp_().neg_()
            place = ids - start
            is_here = (place >= 0) & (place < share.shape[1])
            share.scatter_add_(1, place.clamp(0, share.shape[1] - 1)[:, None], is_here[:, None].float())
            rows = ctx.weight[start : start + _ROWS_AT_ONCE].to(hidden.dtype)
            result += share.mul_(grads[0][:, None] / ctx.temperature).to(hidden.dtype) @ rows
        return result.to(hidden.dtype), None, None, None


def _logits(hidden: Tensor, weight: Tensor, start: int, temperature: float) -> Tensor:
    rows = weight[start : start + _ROWS_AT_ONCE].to(hidden.dtype)
    return (hidden @ rows.T).float().div_(temperature)
