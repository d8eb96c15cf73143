"""Attention with sinks (a learnt logit per head that takes part in the softmax and carries no value), in little memory.

transformers has no fused kernel for it: its eager way keeps several (heads, Q, K) tensors. Here a few key-value heads at
a time are computed, and again in the backward. Sliding windows come as masks. Not covered: dropout, gradients of sinks.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

NAME = "outpace_sinks"
"""What the model's configuration calls this attention."""
_SCORES_AT_ONCE = 2**24
"""Scores held at a time, in float32: 64 MB."""


def register() -> None:
    """Make this attention known to transformers, with additive masks."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """transformers' attention interface: query (B, heads, Q, D), key and value (B, kv heads, K, D) -> (B, Q, heads, D)."""
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
        batch, heads, queries, size = query.shape
        grouped = query.reshape(batch, key.shape[1], -1, queries, size)
        out = torch.empty_like(grouped)
        log_total = query.new_empty(grouped.shape[:-1], dtype=torch.float32)
        sinks_HG = sinks.float().view(key.shape[1], -1)
        for part in _parts(grouped, key):
            scores = _scores(grouped[:, part], key[:, part], mask, scaling)
            total = torch.logaddexp(scores.logsumexp(dim=-1), sinks_HG[part][None, :, :, None])
            share = scores.sub_(total[..., None]).exp_().to(value.dtype)
            out[:, part] = share @ value[:, part, None]
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
            q, k, v, g = grouped[:, part], key[:, part, None], value[:, part, None], grad[:, part]
            share = _scores(q, key[:, part], mask, ctx.scaling).sub_(log_total[:, part, :, :, None]).exp_()
            to_value[:, part] = (share.to(v.dtype).mT @ g).sum(dim=2)
            mean = (g.float() * out[:, part].float()).sum(dim=-1, keepdim=True)
            slope = (g @ v.mT).float().sub_(mean).mul_(share).mul_(ctx.scaling).to(q.dtype)
            to_query[:, part] = slope @ k
            to_key[:, part] = (slope.mT @ q).sum(dim=2)
        heads = (grouped.shape[0], -1, *grouped.shape[3:])
        return to_query.view(heads), to_key, to_value, None, None, None


def _scores(grouped: Tensor, key: Tensor, mask: Tensor | None, scaling: float) -> Tensor:
    """(B, kv heads, group, Q, K) in float32, or wider where the inputs are."""
    scores = grouped @ key[:, :, None].mT
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32)).mul_(scaling)
    return scores if mask is None else scores.add_(mask[:, :, None])


def _parts(grouped: Tensor, key: Tensor) -> Iterator[slice]:
    """Key-value heads, as many at a time as the scores' memory allows."""
    batch, heads, group, queries, _ = grouped.shape
    step = max(1, _SCORES_AT_ONCE // (batch * group * queries * key.shape[2]))
    for start in range(0, heads, step):
        yield slice(start, start + step)
