"""One decode step of a Llama-shaped model straight from its weights, without calling a module.

That spares the Python time and the copies of `forward` (a large part of a step for a small model or a small batch). On
a GPU with Triton its layers are made of fused kernels, which more than halves the number of kernels in a step. All ways
are checked against a full forward or each other in the tests. Not covered: what `decode.is_llama_shaped` refuses.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # the name that everyone gives it

from outpace.policy.kernel_check import KERNEL_TYPES, runs_kernels
from outpace.policy.slots import Slots

_FUSED_HEAD_SIZE, _FUSED_GROUP = 256, 16  # a program holds all heads that share a key, in registers and shared memory


def _linear(module: Any) -> tuple[Tensor, Tensor | None]:
    module = getattr(module, "base_layer", module)
    return module.weight, module.bias


def _norm(x: Tensor, norm: tuple[Tensor, float]) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), norm[0], norm[1])


def signed(sin: Tensor) -> Tensor:
    """Sines (..., D) with the minus that a rotation has in its first half, for `rotate`."""
    half = sin.shape[-1] // 2
    return torch.cat((-sin[..., :half], sin[..., half:]), dim=-1)


def rotate(x: Tensor, cos: Tensor, signed_sin: Tensor, *, back: bool = False) -> Tensor:
    """Rotary embedding of x (..., heads, D) by angles of a shape that broadcasts; `back` undoes it."""
    return torch.addcmul(x * cos, x.roll(x.shape[-1] // 2, dims=-1), signed_sin, value=-1 if back else 1)


def lay_together(weights: Sequence[Tensor]) -> Tensor:
    """Move weights (out, in), or biases (out,), into one block of memory, end to end, and return the block.

    Each stays what it was, as a view of its part, so nothing is there twice, and what changes one in place changes the
    block. Weights that lie so already are left where they are.
    """
    first, count = weights[0], sum(weight.shape[0] for weight in weights)
    ends = [first.data_ptr()]
    for weight in weights:
        ends.append(ends[-1] + weight.numel() * weight.element_size())
    shape, stride = (count, *first.shape[1:]), first.stride()
    is_block = all(weight.data_ptr() == end for weight, end in zip(weights, ends, strict=False))
    if is_block and first.untyped_storage().data_ptr() == weights[-1].untyped_storage().data_ptr():
        return first.detach().as_strided(shape, stride)
    with torch.inference_mode(False), torch.no_grad():  # weights made in inference mode could never be trained
        block = torch.empty(shape, dtype=first.dtype, device=first.device)
        start = 0
        for weight in weights:
            part = block[start : start + weight.shape[0]]
            part.copy_(weight)
            weight.data = part
            start += weight.shape[0]
    return block


class Layer:
    """The weights of one transformer layer, as plain tensors."""

    def __init__(self, layer: Any) -> None:
        attention, mlp = layer.self_attn, layer.mlp
        self.qkv = [_linear(attention.q_proj), _linear(attention.k_proj), _linear(attention.v_proj)]
        self.out = _linear(attention.o_proj)
        self.gate, self.up, self.down = _linear(mlp.gate_proj), _linear(mlp.up_proj), _linear(mlp.down_proj)
        self.norms = [(n.weight, n.variance_epsilon) for n in (layer.input_layernorm, layer.post_attention_layernorm)]
        has_qk_norm = hasattr(attention, "q_norm")
        self.qk_norms = (
            [(n.weight, n.variance_epsilon) for n in (attention.q_norm, attention.k_norm)] if has_qk_norm else None
        )
        self.head_size, self.scaling = attention.head_dim, attention.scaling
        self.group = self.qkv[0][0].shape[0] // self.qkv[1][0].shape[0]
        self.kv_heads = self.qkv[1][0].shape[0] // self.head_size
        self.qkv_joined: tuple[Tensor, Tensor | None] | None = None
        self.gate_up_joined: tuple[Tensor, Tensor | None] | None = None

    def join(self) -> None:
        """Let linear layers of one input be one: queries, keys and values; gate and up."""
        self.qkv_joined, self.gate_up_joined = _joined(self.qkv), _joined([self.gate, self.up])


def _joined(linears: Sequence[tuple[Tensor, Tensor | None]]) -> tuple[Tensor, Tensor | None]:
    biases = [bias for _, bias in linears if bias is not None]
    return lay_together([weight for weight, _ in linears]), lay_together(biases) if biases else None


def _layer_step(
    x: Tensor, layer: Layer, keys: Tensor, values: Tensor, reach: int, shared: tuple[Tensor, ...]
) -> Tensor:
    """One layer on x (B, d): keys and values (B, H, T, D) are written at each row's position."""
    index, position_B, cos, signed_sin, mask = shared
    rows, size = x.shape[0], layer.head_size
    normed = _norm(x, layer.norms[0])
    q, k, v = (F.linear(normed, *weights).view(rows, -1, size) for weights in layer.qkv)
    if layer.qk_norms is not None:
        q, k = _norm(q, layer.qk_norms[0]), _norm(k, layer.qk_norms[1])
    keys[index, :, position_B] = rotate(k, cos, signed_sin)
    values[index, :, position_B] = v
    # The query heads that share a key-value head act as its queries: no key is copied per head.
    grouped = rotate(q, cos, signed_sin).view(rows, keys.shape[1], -1, size)
    mixed = F.scaled_dot_product_attention(
        grouped, keys[:, :, :reach], values[:, :, :reach], attn_mask=mask, scale=layer.scaling
    )
    x = x + F.linear(mixed.reshape(rows, -1), *layer.out)
    normed = _norm(x, layer.norms[1])
    return x + F.linear(F.silu(F.linear(normed, *layer.gate)) * F.linear(normed, *layer.up), *layer.down)


class LeanDecoder:
    """Decodes Llama-shaped models (Llama, Qwen2, Qwen3, Mistral without window) straight from their weights.

    `fused` says whether layers are made of Triton kernels; None: where they run, unless layers are to be compiled.
    """

    def __init__(self, network: Any, *, compiled: bool = False, fused: bool | None = None) -> None:
        body = network.model
        self.embedding, self.head = body.embed_tokens, _linear(network.lm_head)
        self.layers = [Layer(layer) for layer in body.layers]
        self.norm = (body.norm.weight, body.norm.variance_epsilon)
        self.rotary = body.rotary_emb
        self.step = torch.compile(_layer_step, dynamic=False) if compiled else _layer_step
        self.is_fused = (not compiled and self._can_fuse()) if fused is None else fused
        if self.is_fused:
            for each in self.layers:
                each.join()
        if fused is None and self.is_fused:
            self.is_fused = self._rehearse()

    def _can_fuse(self) -> bool:
        weights, layer = self.embedding.weight, self.layers[0]
        has_kind = weights.dtype in KERNEL_TYPES and layer.head_size % 2 == 0
        has_kind &= (
            len({bias is None for _, bias in layer.qkv}) == len({b is None for _, b in (layer.gate, layer.up)}) == 1
        )
        fits = layer.head_size <= _FUSED_HEAD_SIZE and layer.group <= _FUSED_GROUP
        return has_kind and fits and runs_kernels(weights.device)

    def _rehearse(self) -> bool:
        """Whether a layer's kernels are built and run here for this model; warns when they are not."""
        from outpace.policy.decode_kernels import Turn, layer_step

        weights, layer = self.embedding.weight, self.layers[0]
        keys, values = (weights.new_zeros(1, layer.kv_heads, 16, layer.head_size) for _ in range(2))
        angle = weights.new_zeros(1, layer.head_size)
        turn = Turn(torch.zeros(1, dtype=torch.long, device=weights.device), angle, angle)
        try:
            layer_step(weights.new_zeros(1, weights.shape[1]), layer, keys, values, turn)
        except Exception as failure:  # whatever it is, sampling goes on without
            warnings.warn(f"this model is sampled without fused kernels, which is slower: {failure}", stacklevel=2)
            return False
        return True

    def __call__(self, slots: Slots, rows: int, reach: int) -> Tensor:
        """See `Decoder`."""
        x = F.embedding(slots.token_B[:rows], self.embedding.weight)
        x = self._fused_layers(x, slots) if self.is_fused else self._plain_layers(x, slots, reach)
        return F.linear(_norm(x, self.norm), *self.head)

    def _fused_layers(self, x: Tensor, slots: Slots) -> Tensor:
        from outpace.policy.decode_kernels import Turn, layer_step

        rows = x.shape[0]
        position_B = slots.position_B[:rows]
        cos, sin = (angle[:, 0].contiguous() for angle in self.rotary(x[:, None], position_B[:, None]))
        turn = Turn(position_B, cos, sin)
        for layer, keys, values in zip(self.layers, slots.keys, slots.values, strict=True):
            x = layer_step(x, layer, keys[:rows], values[:rows], turn)
        return x

    def _plain_layers(self, x: Tensor, slots: Slots, reach: int) -> Tensor:
        rows = x.shape[0]
        position_B = slots.position_B[:rows]
        cos, sin = self.rotary(x[:, None], position_B[:, None])
        signed_sin = signed(sin)
        place = torch.arange(reach, device=x.device)
        is_seen = (place <= position_B[:, None])[:, None, None, :]
        mask = torch.zeros(is_seen.shape, dtype=x.dtype, device=x.device).masked_fill_(~is_seen, float("-inf"))
        mask = mask.expand(-1, -1, self.layers[0].group, -1)
        shared = (torch.arange(rows, device=x.device), position_B, cos, signed_sin, mask)
        for layer, keys, values in zip(self.layers, slots.keys, slots.values, strict=True):
            x = self.step(x, layer, keys[:rows], values[:rows], reach, shared)
        return x
