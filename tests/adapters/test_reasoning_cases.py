"""The shared cases about channels, think tags and fences: the same answer through token ids as through the text."""

import json
import re
from pathlib import Path

import pytest

from outpace.adapters.scoring import Scorer
from outpace.extract import extract
from outpace.testing import ScriptedGrader

from .test_scoring import task

CASES = Path(__file__).parents[3] / "shared" / "cases" / "cases.jsonl"
SPECIALS = ["<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|return|>", "<|call|>", "<|constrain|>"]
THINK = ["<think>", "</think>", "<|im_end|>"]


class MarkerTokenizer:
    """One id per character; the markers of one family are single tokens, which decoding drops."""

    def __init__(self, specials):
        self._ids = {text: i for i, text in enumerate(specials)}
        self.eos_token_id = len(specials) - 1

    def get_vocab(self):
        return dict(self._ids)

    def encode(self, text, *, add_special_tokens=False):
        pieces = re.split(f"({'|'.join(map(re.escape, self._ids))})", text)
        return [i for p in pieces for i in ([self._ids[p]] if p in self._ids else [ord(c) + 100 for c in p])]

    def decode(self, ids, skip_special_tokens=True):
        return "".join(chr(i - 100) for i in ids if i >= 100)

    def apply_chat_template(self, messages, add_generation_prompt, tokenize):
        return messages[0]["content"]


def cases():
    if not CASES.exists():
        return []
    found = [json.loads(line) for line in CASES.read_text().splitlines()]
    chosen = [case for case in found if case["group"] == "B" and case["input"].get("kind") == "completion"]
    texts = {case["id"]: (case, case["input"].get("text") or eval(case["input"]["build"])) for case in chosen}
    return [(case, text) for case, text in texts.values() if any(m in text for m in [*SPECIALS, *THINK, "```"])]


@pytest.mark.parametrize(("case", "text"), cases(), ids=lambda value: value["id"] if isinstance(value, dict) else "")
def test_a_completion_has_one_program_whichever_way_it_is_read(case, text):
    if isinstance(text, tuple | list):
        pytest.skip("the case is not one text")
    entry_point = case["input"]["task"]
    by_text = extract(text, entry_point)
    tokenizer = MarkerTokenizer(SPECIALS if any(m in text for m in SPECIALS) else THINK)
    ids = tokenizer.encode(text)
    one = Scorer(ScriptedGrader({}), [task()], tokenizer=tokenizer).take_apart(task(), tokenizer.decode(ids), ids)
    by_ids = extract(one.text, entry_point, answer=one.answer)
    assert (by_ids.candidate and by_ids.candidate.source) == (by_text.candidate and by_text.candidate.source)
    if case["expected"] == "honest_scored":
        assert by_ids.candidate is not None
