"""Cutting the padding off changes how much is computed, and nothing else."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM

from outpace.training.trimming import group_by_length, without_padding

LENGTHS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 300)), min_size=1, max_size=40)


def tokens(groups, prompts, completions):
    return sum(len(g) * (max(prompts[r] for r in g) + max(completions[r] for r in g)) for g in groups)


@settings(deadline=None)
@given(LENGTHS, st.sampled_from([1, 64, 4096]))
def test_every_row_is_in_one_group_and_groups_never_cost_more_than_one_pass(lengths, per_pass):
    prompts, completions = zip(*lengths, strict=True)
    groups = group_by_length(prompts, completions, per_pass)
    assert sorted(itertools.chain(*groups)) == list(range(len(lengths)))
    whole = tokens([range(len(lengths))], prompts, completions) + per_pass
    assert tokens(groups, prompts, completions) + per_pass * len(groups) <= whole


def test_long_rows_are_kept_apart_from_short_ones_when_a_pass_is_cheap():
    assert group_by_length([10] * 6, [20, 300, 21, 19, 290, 20], 64) == [[3, 0, 5, 2], [4, 1]]
    assert len(group_by_length([10] * 6, [20, 300, 21, 19, 290, 20], 4096)) == 1


def batch(lengths, columns):
    prompt_columns = max(p for p, _ in lengths) + 3
    ids = torch.randint(1, 60, (len(lengths), prompt_columns + columns))
    mask = torch.zeros_like(ids)
    for row, (prompt, completion) in enumerate(lengths):
        mask[row, prompt_columns - prompt : prompt_columns + completion] = 1
    return ids * mask, mask


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def whole(model, ids, mask, keep):
    logits = model(input_ids=ids, attention_mask=mask).logits[:, -keep - 1 : -1]
    logps = logits.log_softmax(-1)
    return logps.gather(-1, ids[:, -keep:, None])[..., 0], -(logps.exp() * logps).sum(-1)


def cut(model, ids, mask, keep, shapes, **options):
    def compute(rows, columns, kept):
        shapes.append((len(rows), columns.stop - columns.start))
        return whole(model, ids[rows, columns], mask[rows, columns], kept)

    return without_padding(compute, mask, keep, **options)


def test_log_probabilities_entropies_and_gradients_are_those_of_the_padded_batch(model):
    lengths = [(5, 7), (12, 90), (5, 6), (9, 31), (12, 88), (5, 0)]
    ids, mask = batch(lengths, 100)
    counted = mask[:, -100:].float()
    weights = torch.randn(len(lengths), 100) * counted
    results, shapes = [], []
    for way in (whole, lambda *given: cut(*given, shapes)):
        model.zero_grad()
        logps, entropies = way(model, ids, mask, 100)
        ((logps + 0.1 * entropies) * weights).sum().backward()
        results.append((logps * counted, entropies * counted, [p.grad.clone() for p in model.parameters()]))
    (a, ea, ga), (b, eb, gb) = results
    assert torch.allclose(a, b, atol=1e-5)
    assert torch.allclose(ea, eb, atol=1e-5)
    assert all(torch.allclose(x, y, atol=1e-4) for x, y in zip(ga, gb, strict=True))
    assert sum(rows for rows, _ in shapes) == len(lengths)
    assert sum(rows * columns for rows, columns in shapes) < 0.7 * ids.numel()


def test_no_pass_has_more_rows_than_it_may(model):
    ids, mask = batch([(5, 7), (5, 8), (5, 7), (5, 90)], 100)
    shapes = []
    logps, _ = cut(model, ids, mask, 100, shapes, most_rows=2)
    assert max(rows for rows, _ in shapes) == 2
    assert torch.allclose(logps * mask[:, -100:], whole(model, ids, mask, 100)[0] * mask[:, -100:], atol=1e-5)


def test_without_entropies_none_are_given():
    _, mask = batch([(5, 7), (12, 90)], 100)
    logps, entropies = without_padding(lambda rows, _, keep: (torch.zeros(len(rows), keep), None), mask, 100)
    assert logps.shape == (2, 100)
    assert entropies is None
