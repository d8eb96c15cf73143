"""The sampler benchmark counts tokens alike for every sampler and reports a sampler that fails instead of hiding it."""

import pytest

torch = pytest.importorskip("torch")

from outpace.bench.sampler import as_json, bench_sampler  # noqa: E402


def test_without_end_tokens_every_sampler_draws_the_full_length(make_policy):
    policy = make_policy("llama")
    heard = []
    measured = bench_sampler(
        policy,
        batches=(3,),
        max_new_tokens=6,
        samplers=("group", "transformers"),
        stops=(False,),
        on_measured=heard.append,
    )
    assert [(one.sampler, one.tokens) for one in measured] == [("group", 18), ("transformers", 18)]
    assert heard == measured
    assert all(row["tokens_per_s"] > 0 for row in as_json(measured))


def test_a_sampler_that_fails_is_reported_with_its_reason(make_policy):
    policy = make_policy("llama")
    with torch.no_grad():
        policy.model.model.norm.weight.fill_(float("nan"))
    [failed] = bench_sampler(policy, batches=(2,), max_new_tokens=4, samplers=("group",), stops=(True,))
    assert failed.tokens_per_s is None
    assert failed.note.startswith("TrainingDiverged")
