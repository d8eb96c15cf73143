"""The sampler draws what the model says: checked against `generate`, a plain forward pass and chi-square."""

import gc
import math
import weakref
from collections import Counter
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from outpace.errors import ConfigError, TrainingDiverged  # noqa: E402
from outpace.policy import SamplingSettings, attach_lora, sample  # noqa: E402
from outpace.policy.engine import smaller_batch, without_collector  # noqa: E402
from outpace.policy.lean_decode import lay_together  # noqa: E402
from outpace.policy.merged import base_model  # noqa: E402

PROMPTS = [[5, 9, 40, 41, 60, 7, 8, 9, 10, 11, 12], [77], [30, 31, 32, 33, 34], [100, 3, 100]]
KINDS = ["llama", "qwen2", "qwen3", "mistral", "gpt_oss"]


def forward_logprobs(policy, generation, temperature=1.0):
    ids = torch.tensor([generation.prompt_ids + generation.completion_ids])
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits[0].float() / temperature
    logprobs = torch.log_softmax(logits, dim=-1)[len(generation.prompt_ids) - 1 : -1]
    return logprobs.gather(-1, torch.tensor(generation.completion_ids)[:, None])[:, 0]


def give_adapters_weight(policy):
    with torch.no_grad():
        for name, parameter in policy.model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_tokens_equal_those_of_generate(make_policy, kind):
    policy = make_policy(kind)
    drawn = sample(policy, PROMPTS, SamplingSettings(max_new_tokens=20, temperature=0.0, max_batch=2))
    for prompt, generation in zip(PROMPTS, drawn, strict=True):
        expected = policy.model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            max_new_tokens=20,
            do_sample=False,
            eos_token_id=2,
            pad_token_id=0,
        )[0, len(prompt) :].tolist()
        assert list(generation.completion_ids) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probabilities_equal_those_of_a_training_forward(make_policy, kind, temperature):
    policy = make_policy(kind)
    settings = SamplingSettings(max_new_tokens=24, temperature=temperature, top_k=50, max_batch=5)
    for generation in sample(policy, PROMPTS, settings, num_generations=4, seed=3):
        expected = forward_logprobs(policy, generation, temperature)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=2e-4, rtol=1e-4)


def test_log_probabilities_include_the_adapter(make_policy):
    policy = attach_lora(make_policy("qwen2"), r=4, seed=1)
    give_adapters_weight(policy)
    plain = make_policy("qwen2")
    drawn = sample(policy, PROMPTS, SamplingSettings(max_new_tokens=16), num_generations=2)
    for generation in drawn:
        expected = forward_logprobs(policy, generation)
        torch.testing.assert_close(torch.tensor(generation.logprobs), expected, atol=2e-4, rtol=1e-4)
    assert any(not torch.allclose(torch.tensor(g.logprobs), forward_logprobs(plain, g), atol=1e-2) for g in drawn), (
        "the adapter changes nothing, so this test proves nothing"
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sampling_leaves_adapted_weights_bit_for_bit_as_they_were(make_policy, dtype):
    policy = make_policy("qwen2")
    policy.model.to(dtype)
    policy = attach_lora(policy, r=4, seed=1)
    give_adapters_weight(policy)
    before = {name: tensor.clone() for name, tensor in policy.model.state_dict().items()}
    for seed in range(3):
        sample(policy, PROMPTS, SamplingSettings(max_new_tokens=4), seed=seed)
    after = policy.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_weights_are_restored_when_a_callback_raises(make_policy):
    policy = attach_lora(make_policy("llama"), r=4, seed=1)
    give_adapters_weight(policy)
    before = {name: tensor.clone() for name, tensor in policy.model.state_dict().items()}

    def fail(_):
        raise KeyError("stop")

    with pytest.raises(KeyError):
        sample(policy, PROMPTS, SamplingSettings(max_new_tokens=4), on_finish=fail)
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.model.state_dict().items())


def test_updated_weights_are_what_the_next_call_draws_from(make_policy):
    policy = make_policy("llama")
    settings = SamplingSettings(max_new_tokens=12)
    sample(policy, PROMPTS, settings)
    with torch.no_grad():
        for parameter in policy.model.parameters():
            parameter.mul_(0.9)
    for generation in sample(policy, PROMPTS, settings):
        torch.testing.assert_close(
            torch.tensor(generation.logprobs), forward_logprobs(policy, generation), atol=2e-4, rtol=1e-4
        )


@pytest.mark.parametrize(
    "filters", [{}, {"temperature": 0.5}, {"top_k": 5}, {"top_p": 0.6}, {"min_p": 0.2}, {"top_k": 8, "top_p": 0.8}]
)
def test_first_tokens_follow_the_distribution_of_generate(make_policy, filters):
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    policy = make_policy("llama")
    with torch.no_grad():
        policy.model.lm_head.weight.mul_(2.0)
        logits = policy.model(input_ids=torch.tensor([PROMPTS[0]])).logits[:, -1].float()
    warpers = {
        "temperature": TemperatureLogitsWarper,
        "top_k": TopKLogitsWarper,
        "top_p": TopPLogitsWarper,
        "min_p": MinPLogitsWarper,
    }
    processors = LogitsProcessorList([warpers[name](filters[name]) for name in warpers if name in filters])
    expected = torch.softmax(processors(None, logits), dim=-1)[0].double()
    draws = 4000
    drawn = sample(
        policy, [PROMPTS[0]], SamplingSettings(max_new_tokens=1, max_batch=4000, **filters), num_generations=draws
    )
    counts = Counter(generation.completion_ids[0] for generation in drawn)
    assert all(expected[token] > 0 for token in counts), "a token was drawn that generate would never draw"
    is_common = expected * draws >= 5
    observed = torch.tensor([float(counts.get(token, 0)) for token in range(len(expected))], dtype=torch.double)
    cells_expected = torch.cat([expected[is_common] * draws, (expected[~is_common].sum() * draws)[None]])
    cells_observed = torch.cat([observed[is_common], observed[~is_common].sum()[None]])
    usable = cells_expected > 1
    chi_square = ((cells_observed - cells_expected)[usable] ** 2 / cells_expected[usable]).sum().item()
    freedom = max(1, int(usable.sum()) - 1)
    # Wilson-Hilferty: about 4.5 standard deviations
    assert chi_square < freedom * (1 - 2 / (9 * freedom) + 4.5 * math.sqrt(2 / (9 * freedom))) ** 3


def test_a_row_draws_the_same_whatever_batch_it_shares(make_policy):
    policy = make_policy("qwen2")
    runs = [
        sample(policy, PROMPTS, SamplingSettings(max_new_tokens=30, max_batch=size), num_generations=5, seed=11)
        for size in (1, 3, 20)
    ]
    ids = [[generation.completion_ids for generation in run] for run in runs]
    assert ids[0] == ids[1] == ids[2]
    assert sample(policy, PROMPTS, SamplingSettings(max_new_tokens=30), num_generations=5, seed=12) != runs[2]


def test_repeated_prompts_draw_different_rows(make_policy):
    policy = make_policy("llama")
    apart = sample(policy, [PROMPTS[0]] * 4, SamplingSettings(max_new_tokens=12), seed=5)
    together = sample(policy, [PROMPTS[0]], SamplingSettings(max_new_tokens=12), num_generations=4, seed=5)
    assert [g.completion_ids for g in apart] == [g.completion_ids for g in together]
    assert len({g.completion_ids for g in apart}) == 4


def test_every_end_token_ends_a_row_and_limits_cut_the_others(make_policy):
    policy = make_policy("llama", eos_ids=(2, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60))
    drawn = sample(policy, PROMPTS, SamplingSettings(max_new_tokens=15), num_generations=40)
    assert {g.finished for g in drawn} == {True, False}
    for generation in drawn:
        ends = [token in policy.eos_ids for token in generation.completion_ids]
        assert ends[-1] == generation.finished
        assert not any(ends[:-1])
        assert generation.finished or len(generation.completion_ids) == 15
        assert len(generation.logprobs) == len(generation.completion_ids)
    assert len({g.completion_ids[-1] for g in drawn if g.finished}) > 1


def test_each_completion_is_announced_once_when_it_ends(make_policy):
    policy = make_policy("llama", eos_ids=tuple(range(2, 40)))
    announced = []
    drawn = sample(policy, PROMPTS, SamplingSettings(max_new_tokens=20), num_generations=8, on_finish=announced.append)
    assert sorted(announced, key=lambda g: (g.prompt_index, g.member)) == drawn
    lengths = [len(g.completion_ids) for g in announced]
    assert lengths == sorted(lengths), "rows that started together are announced in the order in which they end"


def test_logits_that_are_not_finite_stop_sampling(make_policy):
    policy = make_policy("llama")
    with torch.no_grad():
        policy.model.model.norm.weight.fill_(float("nan"))
    with pytest.raises(TrainingDiverged, match="not finite"):
        sample(policy, PROMPTS, SamplingSettings(max_new_tokens=4))


def test_a_prompt_that_does_not_fit_is_refused(make_policy):
    with pytest.raises(ConfigError, match="256 positions"):
        sample(make_policy(), [[5] * 250], SamplingSettings(max_new_tokens=10))
    with pytest.raises(ConfigError, match="empty"):
        sample(make_policy(), [[]])


@pytest.mark.parametrize("bad", [{"temperature": -1}, {"top_p": 0}, {"top_k": -1}, {"min_p": 2}, {"max_new_tokens": 0}])
def test_settings_refuse_nonsense(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        SamplingSettings(**bad)


def test_training_mode_and_gradients_are_left_as_they_were(make_policy):
    policy = make_policy("llama")
    policy.model.train()
    sample(policy, PROMPTS, SamplingSettings(max_new_tokens=3))
    assert policy.model.training
    loss = policy.model(input_ids=torch.tensor([PROMPTS[0]]), labels=torch.tensor([PROMPTS[0]])).loss
    loss.backward()
    assert all(parameter.grad is not None for parameter in base_model(policy.model).parameters())


def test_messages_are_rendered_by_the_chat_template(make_policy):
    policy = make_policy("llama")
    [generation] = sample(policy, [[{"role": "user", "content": "f"}]], SamplingSettings(max_new_tokens=2))
    assert policy.tokenizer.decode(generation.prompt_ids).endswith("<|im_start|>assistant\n")
    assert replace(generation, text="") != generation


@pytest.mark.parametrize(
    ("size", "living", "captured", "largest_new", "expected"),
    [
        (256, 200, {256}, 256, 256),
        (256, 128, {256}, 256, 128),
        (256, 20, {256}, 64, 32),
        (256, 100, {256}, 64, 256),
        (256, 20, {256, 128, 64}, 0, 64),
        (200, 100, {200}, 200, 128),
        (30, 3, {30}, 8, 8),
        (8, 1, {8}, 8, 8),
        (3, 1, {3}, 8, 3),
    ],
)
def test_a_captured_batch_shrinks_to_graphs_at_hand_or_to_those_that_pay(size, living, captured, largest_new, expected):
    assert smaller_batch(size, living, captured=captured, largest_new=largest_new) == expected


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_weights_laid_together_stay_the_model_that_they_were(make_policy, kind, tmp_path):
    network = make_policy(kind).model
    ids = torch.arange(2, 12)[None]
    before = network(input_ids=ids).logits
    attention = network.model.layers[0].self_attn
    linears = [attention.q_proj, attention.k_proj, attention.v_proj]
    with torch.inference_mode():
        block = lay_together([linear.weight for linear in linears])
        again = lay_together([linear.weight for linear in linears])
    assert again.data_ptr() == block.data_ptr()
    assert torch.equal(again, block)
    assert torch.equal(block, torch.cat([linear.weight for linear in linears]))
    assert torch.equal(network(input_ids=ids).logits, before)
    with torch.no_grad():
        attention.k_proj.weight.add_(1)
    assert torch.equal(again, torch.cat([linear.weight for linear in linears])), "a block follows its weights"
    network(input_ids=ids).logits.sum().backward()
    assert attention.k_proj.weight.grad.any(), "and they can still be trained"
    network.save_pretrained(tmp_path)
    assert torch.equal(type(network).from_pretrained(tmp_path)(input_ids=ids).logits, network(input_ids=ids).logits)


class _Cycle:
    def __init__(self):
        self.itself = self


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_collected_before_a_capture_and_not_during_it(was_on):
    try:
        gc.enable() if was_on else gc.disable()
        before, seen = weakref.ref(_Cycle()), []
        with without_collector():
            seen += [before(), gc.isenabled()]
        assert seen == [None, False]
        assert gc.isenabled() is was_on
        with pytest.raises(ZeroDivisionError), without_collector():
            raise ZeroDivisionError
        assert gc.isenabled() is was_on
    finally:
        gc.enable()
