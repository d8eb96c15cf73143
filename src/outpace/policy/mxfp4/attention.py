"""Attention with sinks (a learnt logit per head that is in the softmax and carries no value), in little memory.

transformers has no fused kernel for it: its eager way keeps several (heads, Q, K) tensors. Here a few query heads at a
time are computed, and again in the backward. Sliding windows come as masks. Not covered: dropout, and gradients of
sinks.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from outpace.policy.storage import SCORES_AT_ONCE

NAME = "outpace_sinks"
"""What the model's configuration calls this attention."""


def register() -> None:
    """Make this attention known to transformers, with additive masks."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """transformers' interface: query (B, heads, Q, D), key and value (B, kv heads, K, D) -> (B, Q, heads, D)."""
    mixed = sink_attention(query, key, value, attention_mask, module.sinks, options["scaling"])
    return mixed.transpose(1, 2), None


def sink_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, sinks: Tensor, scaling: float
) -> Tensor:
    """Softmax over keys and one sink per head, then the mean of values.

    Args:
        query: (B, heads, Q, D).
        key: (B, kv heads, K, D); consecutive query heads share a key-value head.
        value: as `key`.
        mask: (B or 1, 1, Q, K), added to the scores; None: every key is seen.
        sinks: (heads,).
        scaling: factor on the products.

    Returns:
        (B, heads, Q, D).
    """
    if mask is not None:
        mask = mask[..., : key.shape[2]]
    return _SinkAttention.apply(query, key, value, mask, sinks, scaling)  # type: ignore[no-untyped-call, no-any-return]


class _SinkAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, sinks: Tensor, scaling: float
    ) -> Tensor:
        batch, _, queries, size = query.shape
        # the query heads that share a key-value head act as its queries: no key is copied per head
        grouped = query.reshape(batch, key.shape[1], -1, size)
        out = torch.empty_like(grouped)
        log_total = torch.empty(grouped.shape[:-1], dtype=_wide(query), device=query.device)
        sinks_HR = sinks.to(log_total.dtype).view(key.shape[1], -1).repeat_interleave(queries, dim=1)
        for heads, rows in _parts(grouped, key, queries):
            scores = _scores(grouped[:, heads, rows], key[:, heads], mask, scaling)
            total = torch.logaddexp(scores.logsumexp(dim=-1), sinks_HR[heads, rows])
            share = scores.sub_(total[..., None]).exp_().to(value.dtype)
            out[:, heads, rows] = share @ value[:, heads]
            log_total[:, heads, rows] = total
            del scores, share  # before the next are made
        ctx.save_for_backward(grouped, key, value, mask, out, log_total)
        ctx.scaling = scaling
        return out.view(query.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grouped, key, value, mask, out, log_total = ctx.saved_tensors
        grad = grads[0].reshape(grouped.shape)
        to_query = torch.empty_like(grouped)
        # several parts may add to one key: summed as exactly as one product would be
        to_key, to_value = (torch.zeros_like(tensor, dtype=_wide(tensor)) for tensor in (key, value))
        for heads, rows in _parts(grouped, key, grads[0].shape[2]):
            q, k, v, g = grouped[:, heads, rows], key[:, heads], value[:, heads], grad[:, heads, rows]
            share = _scores(q, k, mask, ctx.scaling).sub_(log_total[:, heads, rows, None]).exp_()
            to_value[:, heads] += share.to(v.dtype).mT @ g
            mean = (g.to(share.dtype) * out[:, heads, rows]).sum(dim=-1, keepdim=True)
            slope = (g @ v.mT).to(share.dtype).sub_(mean).mul_(share).mul_(ctx.scaling)
            del share
            slope = slope.to(q.dtype)
            to_query[:, heads, rows] = slope @ k
            to_key[:, heads] += slope.mT @ q
            del slope
        return to_query.view_as(grads[0]), to_key.to(key.dtype), to_value.to(value.dtype), None, None, None


def _wide(tensor: Tensor) -> torch.dtype:
    """float32, or wider where the tensor is."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _scores(grouped: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """(B, kv heads, group x Q, K) in float32 or wider."""
    scores = (grouped @ key.mT).to(_wide(grouped)).mul_(scaling)
    if mask is not None:
        scores.view(*scores.shape[:2], -1, *mask.shape[2:]).add_(mask[:, :, None])
    return scores


def _parts(grouped: Tensor, key: Tensor, queries: int) -> Iterator[tuple[slice, slice]]:
    """Key-value heads, and rows of their query heads, as many at a time as the scores' memory allows."""
    batch, heads, rows, _ = grouped.shape
    at_once = max(1, SCORES_AT_ONCE // (batch * queries * key.shape[2]))
    step_heads, step_rows = max(1, at_once * queries // rows), min(rows, at_once * queries)
    for head in range(0, heads, step_heads):
        for row in range(0, rows, step_rows):
            yield slice(head, head + step_heads), slice(row, row + step_rows)
