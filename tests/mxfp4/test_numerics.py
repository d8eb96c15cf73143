"""Grouped products, the gate, attention with sinks and chunked log-probabilities, by finite differences and by hand."""

import pytest
import torch
from torch.autograd import gradcheck

from outpace.policy.mxfp4 import attention
from outpace.policy.mxfp4.compact import Int8Linear, PackedLinear
from outpace.policy.mxfp4.experts import PackedExperts
from outpace.policy.mxfp4.grouped import PlainEngine, Routes, combine, grouped_product
from outpace.policy.mxfp4.host_adam import HostAdamW
from outpace.policy.mxfp4.packing import Packed, pack, unpack
from outpace.policy.mxfp4.scoring import token_logprobs


@pytest.fixture
def routes() -> Routes:
    torch.manual_seed(0)
    return Routes.of(torch.stack([torch.randperm(5)[:2] for _ in range(7)]), 5)


@pytest.fixture
def packed() -> Packed:
    torch.manual_seed(1)
    return pack(torch.randn(5, 6, 32))


def test_pairs_are_sorted_by_expert_and_come_back_to_their_tokens(routes):
    assert routes.expert_P.tolist() == sorted(routes.expert_P.tolist())
    assert routes.bounds[-1] == routes.pairs == 14
    tokens = torch.arange(7.0)[:, None]
    assert torch.equal(routes.sum_back(routes.gather(tokens)), 2 * tokens)


@pytest.mark.parametrize("by_token", [True, False])
def test_the_gradient_of_a_grouped_product_is_right(routes, packed, by_token):
    rows = torch.randn(7 if by_token else 14, 32, dtype=torch.float64, requires_grad=True)
    assert gradcheck(
        lambda x: grouped_product(x, packed, routes, PlainEngine(), by_token=by_token, bias=torch.ones(5, 6)), rows
    )


def test_a_grouped_product_is_each_pair_times_its_experts_matrix(routes, packed):
    tokens, bias = torch.randn(7, 32), torch.randn(5, 6)
    out = grouped_product(tokens, packed, routes, PlainEngine(), by_token=True, bias=bias)
    matrices = unpack(packed)
    for pair in range(routes.pairs):
        expert, token = routes.expert_P[pair], routes.token_P[pair]
        assert torch.allclose(out[pair], matrices[expert] @ tokens[token] + bias[expert], atol=1e-5)


def test_the_gradient_of_the_combination_is_right(routes):
    served = torch.randn(14, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(7, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s, w: combine(s, w, routes), (served, weights))


def test_the_gradient_of_the_gate_is_right_on_both_sides_of_its_clamps():
    engine, numbers = PlainEngine(), torch.tensor([[-9.0, -8, 9, 8, 1, 0.5, -2, 6.9]], dtype=torch.float64)
    numbers.requires_grad_()
    want = torch.autograd.grad(engine.swiglu(numbers, 1.702, 7.0).sum(), numbers)[0]
    got = engine.swiglu_backward(numbers.detach(), torch.ones(1, 4, dtype=torch.float64), 1.702, 7.0)
    assert torch.allclose(got, want)


def reference_attention(query, key, value, mask, sinks, scaling):
    """Softmax with one more column per head, whose share is dropped."""
    group = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(group, dim=1) for x in (key, value))
    scores = query @ key.mT * scaling + mask
    column = sinks[None, :, None, None].expand(*scores.shape[:3], 1)
    return torch.cat((scores, column), dim=-1).softmax(dim=-1)[..., :-1] @ value


@pytest.mark.parametrize("at_once", [2**24, 150, 100, 1])  # all heads, one key-value head, two query heads, one
def test_attention_and_its_gradients_are_those_of_a_softmax_with_a_sink(monkeypatch, at_once):
    monkeypatch.setattr(attention, "SCORES_AT_ONCE", at_once)
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, heads, 5, 4, dtype=torch.float64, requires_grad=True) for heads in (6, 2, 2))
    mask = torch.zeros(2, 1, 5, 5, dtype=torch.float64).masked_fill(torch.ones(5, 5).triu(1).bool(), -1e30)
    sinks = torch.randn(6, dtype=torch.float64)
    outs = [attend(query, key, value, mask, sinks, 0.5) for attend in (attention.sink_attention, reference_attention)]
    assert torch.allclose(*outs)
    grads = [torch.autograd.grad(out.sin().sum(), (query, key, value)) for out in outs]
    for ours, theirs in zip(*grads, strict=True):
        assert torch.allclose(ours, theirs)


def test_chunked_logprobs_and_their_gradient_are_exact():
    torch.manual_seed(0)
    hidden = torch.randn(6, 8, requires_grad=True)
    weight, ids = torch.randn(20000, 8), torch.randint(0, 20000, (6,))
    ours = token_logprobs(hidden, weight, ids, temperature=0.7)
    theirs = torch.log_softmax(hidden @ weight.T / 0.7, dim=-1).gather(1, ids[:, None])[:, 0]
    assert torch.allclose(ours, theirs, atol=1e-4)
    ours_grad, theirs_grad = (torch.autograd.grad(x.sum(), hidden)[0] for x in (ours, theirs))
    assert torch.allclose(ours_grad, theirs_grad, atol=1e-4)


@pytest.mark.parametrize(("kind", "limit"), [(Int8Linear, 0.01), (PackedLinear, 0.13)])
def test_compact_layers_compute_with_their_unpacked_weight(kind, limit):
    torch.manual_seed(0)
    weight, x = torch.randn(40, 64), torch.randn(3, 5, 64, requires_grad=True)
    layer = kind(64, 40, bias=True)
    layer.bias.data = torch.randn(40)
    layer.fill(lambda start, end: weight[start:end])
    kept = layer.unpacked(torch.float32)
    assert (kept - weight).norm() / weight.norm() < limit
    assert torch.allclose(layer(x), x @ kept.T + layer.bias, atol=1e-4)
    assert torch.allclose(torch.autograd.grad(layer(x).sum(), x)[0], kept.sum(0).expand(3, 5, 64), atol=1e-4)


def test_an_8_bit_weight_reads_as_floats_row_by_row():
    layer = Int8Linear(64, 40, bias=False)
    layer.fill(lambda start, end: torch.ones(40, 64)[start:end])
    assert torch.allclose(layer.weight[3:7], torch.ones(4, 64))


def test_host_adamw_takes_the_steps_of_adamw_in_float32():
    torch.manual_seed(0)
    start = torch.randn(9, 5)
    plain, ours = (torch.nn.Parameter(start.clone()) for _ in range(2))
    options = {"lr": 1e-2, "betas": (0.8, 0.95), "weight_decay": 0.1}
    optimizers = [torch.optim.AdamW([plain], **options), HostAdamW([ours], **options)]
    for step in range(5):
        for parameter, optimizer in zip((plain, ours), optimizers, strict=True):
            parameter.grad = torch.sin(start * step)
            optimizer.step()
    assert torch.allclose(plain, ours, atol=1e-6)


def test_host_adamw_goes_on_after_a_restart_as_if_there_had_been_none():
    def optimizer(parameter):
        return HostAdamW([parameter], lr=1e-3)

    start = torch.randn(4, 4).bfloat16()
    through, stopped = (torch.nn.Parameter(start.clone()) for _ in range(2))
    first, second = optimizer(through), optimizer(stopped)
    for step in range(6):
        if step == 3:
            again = torch.nn.Parameter(stopped.detach().clone())
            third = optimizer(again)
            third.load_state_dict(second.state_dict())
            stopped, second = again, third
        for parameter, each in ((through, first), (stopped, second)):
            parameter.grad = torch.full_like(parameter, 0.1 * (step + 1))
            each.step()
    assert torch.equal(through, stopped)


def test_updates_too_small_for_bfloat16_are_not_lost_by_host_adamw():
    parameter = torch.nn.Parameter(torch.ones(8).bfloat16())
    optimizer = HostAdamW([parameter], lr=1e-3)
    for _ in range(20):
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    assert torch.allclose(parameter.float(), torch.full((8,), 0.98), atol=4e-3)


def test_experts_have_no_parameters_that_could_be_trained_by_mistake():
    experts = PackedExperts(experts=2, hidden=32, intermediate=32, alpha=1.702, limit=7.0)
    assert not list(experts.parameters())
