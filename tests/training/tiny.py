"""A random model of 60 thousand parameters with a character tokenizer, two tasks, and a grader that follows a rule."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from outpace.config import Recipe
from outpace.schema import Isolation, Outcome, Task, Verdict
from outpace.tasks import exact
from outpace.testing import ScriptedGrader, verdict

LETTERS = "abcdefghijklmnopqrstuvwxyz \n:"
TEMPLATE = "{% for m in messages %}{{ m['content'] }}{{ '<|end|>' if m['role'] == 'assistant' else '\n:' }}{% endfor %}"


def save_model(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """A tiny Qwen2 with random weights and its tokenizer, as a folder."""
    vocabulary = {text: number for number, text in enumerate(["<|pad|>", "<|end|>", "<|stop|>", "<|unk|>", *LETTERS])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<|unk|>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(".|\n"), "isolated")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="<|pad|>",
        eos_token="<|end|>",
        unk_token="<|unk|>",
        additional_special_tokens=["<|stop|>"],
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    settings = {
        "vocab_size": len(vocabulary),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
        "eos_token_id": [1, 2],
        "pad_token_id": 0,
        "bos_token_id": None,
        "initializer_range": 0.1,
    } | changes
    model = Qwen2ForCausalLM(Qwen2Config(**settings))
    model.generation_config.eos_token_id = [1, 2]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_task(name: str, prompt: str, split: str = "train") -> Task:
    """A task that is only ever graded by a fake."""
    return Task(
        id=f"fake/{name}",
        prompt=({"role": "user", "content": prompt},),
        entry_point="f",
        compare=exact,
        test_code="assert True",  # never run; a task must have a test
        reference="def f():\n    return 1\n",
        split=split,
    )


TASKS = [make_task("one", "say a"), make_task("two", "say b"), make_task("three", "say c")]
HELDOUT = [make_task("four", "say d", split="heldout")]


def load_tasks(spec: str) -> list[Task]:
    """`fake` and `fake:heldout`."""
    return {"fake": TASKS, "fake:heldout": HELDOUT, "one": TASKS[:1]}[spec]


class RuleGrader(ScriptedGrader):
    """Calls a completion correct when the rule says so; None is our own failure."""

    def __init__(self, rule: Callable[[str], Verdict | None]) -> None:
        super().__init__({})
        self._rule = rule
        self.settings = SimpleNamespace(switched_off=dict)

    def look_up(self, completion: str) -> Verdict | None:
        """Apply the rule."""
        self.graded.append(completion)
        found = self._rule(completion)
        if found is None:
            self.failures["Scripted"] += 1
            self.first_failure = "the rule says that we failed"
        return found

    def isolation(self) -> Isolation:
        """No isolation: nothing runs."""
        return Isolation(level="none")


def starts_with_vowel(completion: str) -> Verdict:
    """An easy rule that a policy can learn in a few steps."""
    return verdict(Outcome.CORRECT, ratio=2.0) if completion[:1] in set("aeiou") else verdict(Outcome.WRONG)


def recipe(model: Path, output_dir: Path, **keys: Any) -> Recipe:
    """Small and quick; `keys` override."""
    settings: dict[str, Any] = {
        "name": "tiny",
        "output_dir": str(output_dir),
        "model": str(model),
        "tasks": "fake",
        "eval_tasks": "fake:heldout",
        "rewards": {"accuracy": 1.0},
        "num_generations": 4,
        "per_device_train_batch_size": 8,
        "max_completion_length": 8,
        "max_steps": 3,
        "save_steps": 1,
        "learning_rate": 1e-2,
        "eval_samples": 4,
        "seed": 7,
    }
    return Recipe.model_validate(settings | keys)
