"""Computing a prompt once for all its completions changes how much is computed, and nothing else."""

import copy
from types import SimpleNamespace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from trl.trainer.utils import add_fused_lm_head

from outpace.training.shared_prompts import SharedPrompts
from outpace.training.trl_seam import LOGPS, quiet_libraries, trainer_class


@pytest.fixture(autouse=True)
def _without_notices_of_renamed_settings():
    with quiet_libraries():
        yield


SIZES = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
MODELS = [
    (LlamaForCausalLM, LlamaConfig), (Qwen2ForCausalLM, Qwen2Config), (Qwen3ForCausalLM, Qwen3Config)
]  # fmt: skip


def lora(kind, config, **options):
    torch.manual_seed(0)
    network = kind(config(**SIZES))
    add_fused_lm_head(network, outputs=("log_probs", "entropy"))
    model = get_peft_model(network, LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", **options))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model.train()


def batch(prompts, lengths, columns):
    """Rows that follow prompts[i] with completions of so many tokens."""
    longest = max(len(prompt) for prompt, _ in lengths) if not prompts else max(map(len, prompts))
    ids = torch.zeros(len(lengths), longest + columns, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (which, length) in enumerate(lengths):
        prompt = prompts[which]
        ids[row, longest - len(prompt) : longest] = torch.tensor(prompt)
        ids[row, longest : longest + length] = torch.randint(1, 64, (length,))
        mask[row, longest - len(prompt) : longest + length] = 1
    return ids, mask


PROMPTS = [[5, 6, 7, 8, 9], [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21], [5]]
ROWS = [(0, 7), (1, 19), (0, 30), (1, 4), (0, 7), (1, 20), (2, 9), (2, 3), (0, 1)]


class Accelerator:
    """The part of accelerate's that log-probabilities need."""

    def __init__(self, processes=1):
        self.num_processes, self.is_main_process = processes, True

    def autocast(self):
        return torch.autocast("cpu", enabled=False)

    def unwrap_model(self, model):
        return model


def logps(model, ids, mask, columns, processes=1, **options):
    """As TRL's trainer computes them; with two processes rows stay whole."""
    trainer = SimpleNamespace(accelerator=Accelerator(processes))
    way = getattr(trainer_class("grpo"), LOGPS)
    found = way(trainer, model, ids, mask, columns, compute_entropy=True, **options)
    return found[0] * mask[:, -columns:], found[1] * mask[:, -columns:]


@pytest.mark.parametrize(("kind", "config"), MODELS, ids=lambda value: value.__name__)
@pytest.mark.parametrize("options", [{}, {"batch_size": 2}], ids=["one pass", "two rows a pass"])
def test_log_probabilities_entropies_and_gradients_are_those_of_whole_rows(kind, config, options):
    model, columns = lora(kind, config), 32
    ids, mask = batch(PROMPTS, ROWS, columns)
    weights = torch.randn(len(ROWS), columns)
    results = []
    for processes in (2, 1):
        model.zero_grad()
        chosen, entropy = logps(model, ids, mask, columns, processes, **options)
        ((chosen + 0.1 * entropy) * weights).sum().backward()
        grads = [p.grad.clone() for p in model.parameters() if p.requires_grad]
        results.append((chosen.detach(), entropy.detach(), grads))
    (whole, whole_entropy, whole_grads), (shared, shared_entropy, shared_grads) = results
    assert torch.allclose(whole, shared, atol=1e-5)
    assert torch.allclose(whole_entropy, shared_entropy, atol=1e-5)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(whole_grads, shared_grads, strict=True))
    assert all(grad.any() for grad in shared_grads)


def test_each_distinct_prompt_is_computed_once():
    model = lora(*MODELS[0])
    ids, mask = batch(PROMPTS, ROWS, 32)
    seen = []
    hook = model.get_base_model().model.register_forward_pre_hook(
        lambda _, __, given: seen.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    logps(model, ids, mask, 32)
    hook.remove()
    prompts, *passes = seen
    assert prompts == (3, 10)
    assert sum(rows for rows, _ in passes) == len(ROWS)
    assert max(columns for _, columns in passes) == 31  # the prompt's last token and the longest completion


def shared(model, ids, mask, columns=32):
    return SharedPrompts.of(model, ids, mask, ids.shape[1] - columns)


def test_prompts_that_seldom_repeat_are_left_to_their_rows():
    model = lora(*MODELS[0])
    ids, mask = batch(PROMPTS, [(0, 5), (1, 5), (2, 5), (0, 6)], 32)
    assert shared(model, ids, mask) is None
    ids, mask = batch([[5]], [(0, 5), (0, 7), (0, 9)], 32)
    assert shared(model, ids, mask) is None, "one token is all there is"


def test_models_that_drop_caches_or_attend_otherwise_keep_whole_rows():
    ids, mask = batch(PROMPTS, ROWS, 32)
    checkpointed = lora(*MODELS[0])
    checkpointed.get_base_model().gradient_checkpointing_enable()
    assert shared(checkpointed, ids, mask) is None
    eager = lora(*MODELS[0])
    eager.get_base_model().config._attn_implementation = "eager"
    assert shared(eager, ids, mask) is None
    other = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2))
    assert shared(other, ids, mask) is None


def test_without_adapters_the_same_prompts_give_the_reference_policy():
    model = lora(*MODELS[1])
    ids, mask = batch(PROMPTS, ROWS, 32)
    plain = copy.deepcopy(model)
    with torch.no_grad(), model.disable_adapter(), plain.disable_adapter():
        assert torch.allclose(logps(model, ids, mask, 32)[0], logps(plain, ids, mask, 32, 2)[0], atol=1e-5)


def test_activations_are_not_widened_to_the_adapters_float32_under_autocast():
    model = lora(*MODELS[0], lora_dropout=0.1).to(torch.bfloat16)  # which is not computed the lean way
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.float()
    layer = model.get_base_model().model.layers[0].mlp.up_proj
    seen = []
    layer.lora_A["default"].register_forward_pre_hook(lambda _, given: seen.append(given[0].dtype))
    ids, mask = batch(PROMPTS, ROWS, 32)

    class Half(Accelerator):
        def autocast(self):
            return torch.autocast("cpu", dtype=torch.bfloat16)

    trainer = SimpleNamespace(accelerator=Half())
    found, _, _ = getattr(trainer_class("grpo"), LOGPS)(trainer, model, ids, mask, 32, compute_entropy=True)
    assert set(seen) == {torch.bfloat16}
    assert torch.isfinite(found).all()
    assert layer.cast_input_dtype_enabled, "as before, outside"
