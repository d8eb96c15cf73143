"""A policy of random weights, so that the way from tokens to graded samples is walked without any download."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from evaluation_fakes import task  # noqa: E402 - after the optional packages
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402

from outpace import evaluate as ev  # noqa: E402
from outpace.evaluate import EvalSettings, from_policy  # noqa: E402
from outpace.evaluate.policies import completion_of  # noqa: E402
from outpace.extract import ReasoningMarkers  # noqa: E402
from outpace.policy import Generation, Policy  # noqa: E402
from outpace.schema import Outcome  # noqa: E402
from outpace.testing import ScriptedGrader, verdict  # noqa: E402


@pytest.fixture(autouse=True)
def _torch_keeps_its_cache_to_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # torch sets it when a model first runs


SPECIAL = ["<|endoftext|>", "<think>", "</think>"]


def tiny_policy(specials: list[str]) -> Policy:
    symbols = [*specials, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    inner = Tokenizer(models.BPE(vocab={symbol: i for i, symbol in enumerate(symbols)}, merges=[]))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    inner.add_special_tokens(specials)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=specials[0], pad_token=specials[0]
    )
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(symbols),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
        eos_token_id=0,
        pad_token_id=0,
        bos_token_id=None,
    )
    network = transformers.LlamaForCausalLM(config).eval()
    return Policy(model=network, tokenizer=tokenizer, spec="tiny", eos_ids=(0,), pad_id=0)


def test_a_policy_is_evaluated_with_the_same_completions_for_the_same_seed() -> None:
    draw, grader = from_policy(tiny_policy(SPECIAL[:1])), ScriptedGrader({}, verdict(Outcome.WRONG))
    settings = EvalSettings(samples_per_task=4, max_completion_length=9, batch_size=8, resamples=100)
    tasks = [task(f"fake/{number}") for number in range(3)]
    one, other = ev.evaluate(draw, tasks, grader, settings), ev.evaluate(draw, tasks, grader, settings)
    assert [sample.completion for sample in one.samples] == [sample.completion for sample in other.samples]
    assert len({sample.completion for sample in one.samples}) > 6
    assert all(sample.finished == (sample.tokens < 9) or sample.tokens == 9 for sample in one.samples)
    assert one.overall["pass@1"].samples == 12


@pytest.mark.parametrize(
    ("prompt", "written", "answer"),
    [
        ("Write f.", "<think>hm</think>ok", "ok"),
        ("Write f.<think>", "hm</think>ok", "ok"),
        ("Write f.<think></think>", "ok", None),
        ("Write f.", "<think>hm", ""),
        ("Write f.<think>", "hm", ""),
        ("Write f.", "ok", None),
    ],
)
def test_reasoning_counts_as_length_and_is_no_answer(prompt: str, written: str, answer: str | None) -> None:
    tokenizer = tiny_policy(SPECIAL).tokenizer
    ids = tuple(tokenizer.encode(written))
    generation = Generation(
        prompt_index=0,
        member=0,
        prompt_ids=tuple(tokenizer.encode(prompt)),
        completion_ids=ids,
        logprobs=(0.0,) * len(ids),
        finished=True,
        text=tokenizer.decode(ids, skip_special_tokens=True),
    )
    completion = completion_of(generation, tokenizer, ReasoningMarkers.from_tokenizer(tokenizer))
    assert completion.answer == answer
    assert completion.tokens == len(ids)
