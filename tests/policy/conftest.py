"""Tiny random models, so that the policy layer is tested without any weights that must be fetched."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: E402

from outpace.policy import Policy  # noqa: E402

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokenizer():
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(["def f(x): return x\nsystem user assistant"] * 4, trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    fast.chat_template = TEMPLATE
    return fast


SHAPES = {
    "llama": {},
    "qwen2": {},
    "qwen3": {"head_dim": 12},
    "mistral": {"sliding_window": 8},
    "gpt_oss": {
        "head_dim": 8,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },
}


def tiny_network(kind: str, vocabulary: int, seed: int = 0, scale: float = 3.0):
    config = transformers.AutoConfig.for_model(
        kind,
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=2,
        bos_token_id=None,
        pad_token_id=0,
        **SHAPES[kind],
    )
    torch.manual_seed(seed)
    network = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for _, parameter in network.named_parameters():
            # Larger weights than at initialisation, so that logits differ enough to tell right from wrong.
            parameter.mul_(scale) if parameter.dim() > 1 else parameter.add_(0.1 * torch.randn_like(parameter))
    return network


@pytest.fixture
def make_policy(tokenizer):
    def make(kind: str = "llama", seed: int = 0, eos_ids: tuple[int, ...] = (2,)) -> Policy:
        network = tiny_network(kind, len(tokenizer), seed)
        return Policy(model=network, tokenizer=tokenizer, spec=f"tiny-{kind}", eos_ids=eos_ids, pad_id=0)

    return make


@pytest.fixture
def model_folder(tmp_path: Path, tokenizer) -> Path:
    folder = tmp_path / "tiny"
    network = tiny_network("qwen2", len(tokenizer))
    network.generation_config.eos_token_id = [2, 0]
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
