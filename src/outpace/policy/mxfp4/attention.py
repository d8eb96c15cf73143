"""Attention with sinks (a learnt logit per head that is in the softmax and carries no value), in little memory.

transformers has no fused kernel for it: its eager way keeps several (heads, Q, K) tensors. Here a few key-value heads
at a time are computed, and again in the backward. Sliding windows come as masks. Not covered: dropout, and gradients of
sinks.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

NAME = "outpace_sinks"
"""What the model's configuration calls this attention."""
_SCORES_AT_ONCE = 2**23
"""Scores held at a time, in float32: 32 MB."""


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
        for part in _parts(grouped, key):
            scores = _scores(grouped[:, part], key[:, part], mask, scaling)
            total = torch.logaddexp(scores.logsumexp(dim=-1), sinks_HR[part])
            share = scores.sub_(total[..., None]).exp_().to(value.dtype)
            out[:, part] = share @ value[:, part]
            log_total[:, part] = total
        ctx.save_for_backward(grouped, key, value, mask, out, log_total)
        ctx.scaling = scaling
        return out.view(query.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grouped, key, value, mask, out, log_total = ctx.saved_tensors
        grad = grads[0].reshape(grouped.shape)
        to_query, to_key, to_value = torch.empty_like(grouped), torch.empty_like(key), torch.empty_like(value)
        for part in _parts(grouped, key):
            q, k, v, g = grouped[:, part], key[:, part], value[:, part], grad[:, part]
            share = _scores(q, k, mask, ctx.scaling).sub_(log_total[:, part, :, None]).exp_()
            to_value[:, part] = share.to(v.dtype).mT @ g
            mean = (g.to(share.dtype) * out[:, part]).sum(dim=-1, keepdim=True)
            slope = (g @ v.mT).to(share.dtype).sub_(mean).mul_(share).mul_(ctx.scaling).to(q.dtype)
            to_query[:, part] = slope @ k
            to_key[:, part] = slope.mT @ q
        return to_query.view_as(grads[0]), to_key, to_value, None, None, None


def _wide(tensor: Tensor) -> torch.dtype:
    """float32, or wider where the tensor is."""
    return torch.promote_types(tensor.dtype, torch.float32)


def _scores(grouped: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """(B, kv heads, group x Q, K) in float32 or wider."""
    scores = (grouped @ key.mT).to(_wide(grouped)).mul_(scaling)
    if mask is not None:
        scores.view(*scores.shape[:2], -1, *mask.shape[2:]).add_(mask[:, :, None])
    return scores


def _parts(grouped: Tensor, key: Tensor) -> Iterator[slice]:
    """Key-value heads, as many at a time as the scores' memory allows."""
    batch, heads, queries, _ = grouped.shape
    step = max(1, _SCORES_AT_ONCE // (batch * queries * key.shape[2]))
    for start in range(0, heads, step):
        yield slice(start, start + step)
