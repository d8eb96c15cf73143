"""Not a test: run by test_decode_kernels.py with TRITON_INTERPRET=1. Prints what it found as JSON."""

import json
import sys

import torch

from conftest import tiny_network
from outpace.policy.decode_kernels import AttentionTile, Turn, attend, rotate_and_store, silu_mul
from outpace.policy.draw import SamplingSettings, draw
from outpace.policy.draw_kernels import draw_unfiltered
from outpace.policy.engine import build_slots
from outpace.policy.lean_decode import LeanDecoder

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SHAPES = [(3, 2, 7, 64), (2, 1, 8, 80), (2, 2, 1, 128)]
"""Rows, key-value heads, query heads of each, head size."""


def error(got, want) -> float:
    return float((got.double() - want.double()).norm() / want.double().norm())


def normed(x, norm):
    return x if norm is None else torch.nn.functional.rms_norm(x, x.shape[-1:], norm[0], norm[1])


def rotated(x, turn):
    cos, sin = turn.cos_BD[:, None].double(), turn.sin_BD[:, None].double()
    first, second = x.double().chunk(2, dim=-1)
    return x.double() * cos + torch.cat((-second, first), dim=-1) * sin


def check_rotation(kind, shape, has_norm) -> float:
    rows, heads, group, size = shape
    positions = 40
    at = torch.tensor([0, positions - 1, 17][:rows])
    turn = Turn(at, *(torch.randn(rows, size).to(kind) for _ in range(2)))
    q, k, v = (torch.randn(rows, count * size).to(kind) for count in (heads * group, heads, heads))
    norms = [(torch.rand(size).to(kind), 1e-5), (torch.rand(size).to(kind), 1e-6)] if has_norm else None
    keys, values = (torch.randn(rows + 1, heads, positions, size).to(kind)[:rows] for _ in range(2))
    want_q = rotated(normed(q.view(rows, -1, size), norms and norms[0]), turn)
    want_keys, want_values = keys.double(), values.clone()
    want_keys[range(rows), :, at] = rotated(normed(k.view(rows, -1, size), norms and norms[1]), turn)
    want_values[range(rows), :, at] = v.view(rows, -1, size)
    is_old = torch.ones(rows, positions, dtype=torch.bool)
    is_old[range(rows), at] = False
    before = keys.clone()
    rotate_and_store(q, (k, v), (keys, values), turn, norms)
    assert torch.equal(values, want_values)
    assert torch.equal(keys.transpose(1, 2)[is_old], before.transpose(1, 2)[is_old])
    return max(error(q.view(rows, -1, size), want_q), error(keys, want_keys))


def check_attention(kind, shape, tile) -> float:
    rows, heads, group, size = shape
    positions = 150
    keys, values = (torch.randn(rows, heads, positions, size).to(kind) for _ in range(2))
    q, at = torch.randn(rows, heads * group * size).to(kind), torch.tensor([positions - 1, 0, 70][:rows])
    scores = q.double().view(rows, heads, group, size) @ keys.double().transpose(-1, -2) * 0.2
    scores = scores.masked_fill(torch.arange(positions) > at[:, None, None, None], float("-inf"))
    want = (scores.softmax(dim=-1) @ values.double()).view(rows, -1)
    apart = torch.cat((q, q.new_empty(rows, 24)), dim=1)[:, : q.shape[1]]
    assert torch.equal(attend(apart, keys, values, at, 0.2, tile), attend(q, keys, values, at, 0.2, tile))
    return error(attend(q, keys, values, at, 0.2, tile), want)


def check_step(model, kind) -> float:
    """A whole step, with what it writes, against the plain one on the same weights."""
    network = tiny_network(model, 300).to(kind)
    both = []
    for fused in (False, True):
        torch.manual_seed(1)
        slots = build_slots(network, size=4, positions=64, max_new=8)
        for cache in (*slots.keys, *slots.values):
            cache.normal_()
        slots.token_B.copy_(torch.randint(0, 300, (4,)))
        slots.position_B.copy_(torch.tensor([0, 63, 31, 40]))
        with torch.inference_mode():
            logits = LeanDecoder(network, fused=fused)(slots, 3, 64)
        both.append((logits, torch.stack(slots.keys), torch.stack(slots.values)))
    return max(error(got, want) for want, got in zip(*both, strict=True))


def decoding() -> dict[str, float]:
    found: dict[str, float] = {}

    def note(name, value):
        found[name] = max(found.get(name, 0.0), value)

    for name, kind in TYPES.items():
        for shape in SHAPES:
            for has_norm in (False, True):
                note(f"rotation {name}", check_rotation(kind, shape, has_norm))
            for tile in (None, AttentionTile(1, 32), AttentionTile(4, 32), AttentionTile(8, 16)):
                note(f"attention {name}", check_attention(kind, shape, tile))
        for model in ("llama", "qwen2", "qwen3"):
            note(f"step {name}", check_step(model, kind))
        gate, up = (torch.randn(3, 700).mul(5).to(kind) for _ in range(2))
        note(
            f"gate {name}",
            error(silu_mul(torch.cat((gate, up), dim=1)), torch.nn.functional.silu(gate.double()) * up.double()),
        )
    return found


def drawing() -> dict[str, float]:
    found = {"equal": 1.0, "log-probability": 0.0}
    for width, wide, temperature in ((700, 512, 1.0), (700, 512, 0.7), (9000, 4096, 1.0)):
        logits = torch.randn(200, width).mul(3).to(torch.bfloat16)
        uniforms = torch.rand(200, dtype=torch.float64)
        want = draw(logits, uniforms, SamplingSettings(temperature=temperature))
        got = draw_unfiltered(logits, uniforms, temperature, wide=wide)
        is_equal = got[0] == want[0]
        assert bool(got[2].all())
        found["equal"] = min(found["equal"], float(is_equal.double().mean()))
        found["log-probability"] = max(found["log-probability"], float((got[1] - want[1])[is_equal].abs().max()))
    logits = torch.randn(1, 40).mul(1.5).expand(600, -1)
    tokens, _, _ = draw_unfiltered(logits, torch.rand(600, dtype=torch.float64), 1.0, wide=32)
    expected = torch.softmax(logits[0].double(), dim=-1) * 600
    counts = torch.bincount(tokens, minlength=40)
    is_common = expected >= 5
    found["chi-square"] = float(((counts - expected) ** 2 / expected)[is_common].sum())
    found["freedom"] = float(is_common.sum())
    again = draw_unfiltered(logits[:9], torch.arange(9, dtype=torch.float64) / 9, 1.0, wide=16)
    once = draw_unfiltered(logits[:9], torch.arange(9, dtype=torch.float64) / 9, 1.0, wide=16)
    assert all(torch.equal(one, other) for one, other in zip(again, once, strict=True))
    check_edges()
    return found


def check_edges() -> None:
    """Impossible tokens, the ends of the unit interval, logits that are not finite."""
    logits = torch.randn(60, 100) * 20
    logits[:, ::3] = logits[:, 16:64] = float("-inf")
    uniforms = torch.cat((torch.zeros(20), torch.rand(20))).double()
    uniforms = torch.cat((uniforms, torch.full((20,), 1 - 2.0**-53, dtype=torch.float64)))
    tokens, logprobs, is_finite = draw_unfiltered(logits, uniforms, 1.0, wide=16)
    assert bool(is_finite.all())
    assert bool(torch.isfinite(logits.gather(1, tokens[:, None])).all())
    assert bool(torch.isfinite(logprobs).all())
    broken = torch.randn(6, 100)
    broken[0, 3], broken[1, 99], broken[2], broken[3] = float("nan"), float("inf"), float("-inf"), float("nan")
    broken[4, :99] = float("-inf")
    tokens, _, is_finite = draw_unfiltered(broken, uniforms[20:26], 1.0, wide=16)
    assert is_finite.tolist() == [False] * 4 + [True] * 2
    assert bool(((tokens >= 0) & (tokens < 100)).all())
    assert tokens[4] == 99


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    json.dump({"decoding": decoding, "drawing": drawing}[sys.argv[1]](), sys.stdout)
