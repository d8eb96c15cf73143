"""Trains the starter: its tokenizer and a small Llama on selected answers, then writes the model folder.

Tokens may hold several words of a line ("for i in range("), never a line break with text on both sides, so answers are
about half as many tokens as with a word-level vocabulary: sampling and training on a CPU cost accordingly.
The loss is taken on the answer alone. Prompts vary (Python version, and a few lines left out now and then), so that the
starter does not hang on one exact wording. Saved with its logits sharpened: a model this small spreads a little
probability over many wrong tokens, and one of them is enough to break a program.

usage: python distill/train.py prompts.json selected.jsonl.gz OUT_FOLDER [--epochs 8] [--device cuda]
"""

import argparse
import gzip
import json
import math
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<|im_start|>assistant\n{% generation %}{{ message['content'] }}<|im_end|>"
    "{% endgeneration %}\n"
    "{% else %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SHAPE = {
    "hidden_size": 320,
    "intermediate_size": 896,
    "num_hidden_layers": 4,
    "num_attention_heads": 5,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "rms_norm_eps": 1e-6,
}


def train_tokenizer(texts: list[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE over lines: a piece is line breaks with the indentation after them, or the rest of a line."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n[\n ]*|```(python)?|[0-9]"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=32,
        min_frequency=20,
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False, model_max_length=2048
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def vary(prompt: str, rng: random.Random) -> str:
    """Return the prompt as some other machine or release might word it."""
    prompt = re.sub(r"Python 3\.\d+", f"Python 3.{rng.choice((11, 11, 12, 13, 14))}", prompt)
    if rng.random() < 0.1:
        prompt = re.sub(r"\nExample: .*", "", prompt)
    if rng.random() < 0.1:
        prompt = prompt.replace("Make it fast. ", "")
    return prompt


class Examples:
    """Answers with their prompts, tokenised once per prompt wording, served as padded batches."""

    def __init__(self, tokenizer: Any, prompts: dict[str, str], records: list[dict[str, Any]], device: str) -> None:
        self.tokenizer, self.prompts, self.records, self.device = tokenizer, prompts, records, device
        end = tokenizer.convert_tokens_to_ids(END)
        texts = [record["text"] for record in records]
        self.answers = [[*ids, end] for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
        self.wordings: dict[str, list[int]] = {}

    def _prompt_ids(self, task: str, rng: random.Random) -> list[int]:
        wording = vary(self.prompts[task], rng)
        if wording not in self.wordings:
            messages = [{"role": "user", "content": wording}]
            encoded = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
            self.wordings[wording] = list(encoded["input_ids"])
        return self.wordings[wording]

    def batches(self, size: int, rng: random.Random) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield (ids, labels), both (B, T), in random order; rows of like length share a batch."""
        order = list(range(len(self.records)))
        rng.shuffle(order)
        chunk = size * 32
        batches = []
        for start in range(0, len(order), chunk):
            part = sorted(order[start : start + chunk], key=lambda index: len(self.answers[index]))
            batches += [part[at : at + size] for at in range(0, len(part), size)]
        rng.shuffle(batches)
        for batch in batches:
            rows = [(self._prompt_ids(self.records[index]["task"], rng), self.answers[index]) for index in batch]
            width = -(-max(len(prompt) + len(answer) for prompt, answer in rows) // 16) * 16
            ids = torch.zeros(len(rows), width, dtype=torch.long)
            labels = torch.full((len(rows), width), -100, dtype=torch.long)
            for row, (prompt, answer) in enumerate(rows):
                length = len(prompt) + len(answer)
                ids[row, :length] = torch.tensor(prompt + answer)
                labels[row, len(prompt) : length] = torch.tensor(answer)
            yield ids.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)


def loss_of(model: Any, ids: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy per answer token."""
    with torch.autocast(ids.device.type, torch.bfloat16, enabled=ids.device.type == "cuda"):
        logits = model(input_ids=ids).logits
    return torch.nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), labels[:, 1:].flatten())


@torch.no_grad()
def held_out_loss(model: Any, examples: Examples) -> float:
    """Loss on answers never trained on: when it rises, the model memorises."""
    model.eval()
    losses = [loss_of(model, *batch).item() for batch in examples.batches(256, random.Random(0))]
    model.train()
    return sum(losses) / len(losses)


def fit(model: Any, train_set: Examples, held_set: Examples, args: argparse.Namespace, rng: random.Random) -> None:
    """AdamW with a short warm-up and a cosine to 2 % of the learning rate; prints both losses each epoch."""
    steps = args.epochs * -(-len(train_set.records) // args.batch)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=args.lr, betas=(0.9, 0.98), fused=args.device != "cpu")
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / 150) * (0.02 + 0.49 * (1 + math.cos(math.pi * min(1.0, s / steps))))
    )
    start_s, total = time.perf_counter(), torch.zeros((), device=args.device)
    for epoch in range(args.epochs):
        total.zero_()
        count = 0
        for batch in train_set.batches(args.batch, rng):
            loss = loss_of(model, *batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
            total += loss.detach()
            count += 1
        spent_s = time.perf_counter() - start_s
        held_loss = held_out_loss(model, held_set)
        print(
            f"epoch {epoch + 1}: loss {total.item() / count:.4f}, held out {held_loss:.4f}, {spent_s:.0f} s", flush=True
        )


def main() -> None:
    """Train, print the losses and save in bfloat16."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("selected", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--vocabulary", type=int, default=2560)
    parser.add_argument(
        "--sharpen",
        type=float,
        default=1.25,
        help="factor on the logits; 1.25 at temperature 1 is 0.8 of what was learnt",
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    rng = random.Random(args.seed)
    prompts = {p["task"]: p["messages"][0]["content"] for p in json.loads(args.prompts.read_text(encoding="utf-8"))}
    with gzip.open(args.selected, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    rng.shuffle(records)
    held, records = records[: len(records) // 25], records[len(records) // 25 :]
    tokenizer = train_tokenizer([record["text"] for record in records] + list(prompts.values()) * 20, args.vocabulary)
    train_set = Examples(tokenizer, prompts, records, args.device)
    held_set = Examples(tokenizer, prompts, held, args.device)
    config = LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64, eos_token_id=2, pad_token_id=0, bos_token_id=None, **SHAPE
    )
    model = LlamaForCausalLM(config).to(args.device)
    answer_tokens = sum(map(len, train_set.answers)) / len(records)
    print(f"{model.num_parameters()} parameters, {len(tokenizer)} tokens in the vocabulary")
    print(f"{len(records)} answers of {answer_tokens:.0f} tokens")
    fit(model, train_set, held_set, args, rng)
    with torch.no_grad():
        model.model.norm.weight.mul_(args.sharpen)
    model.eval().to(torch.bfloat16)
    model.config.dtype = "bfloat16"
    model.generation_config = GenerationConfig(eos_token_id=2, pad_token_id=0, do_sample=True, temperature=1.0)
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)


if __name__ == "__main__":
    main()
