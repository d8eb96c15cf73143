"""Reasoning is split off first; a draft inside it is never the answer."""

import pytest

from outpace.extract import ReasoningMarkers, extract, split_reasoning, split_reasoning_ids

CODE = "```python\ndef f(x):\n    return x\n```\n"
DRAFT = "```python\ndef f(x):\n    return 'draft'\n```\n"
ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|start|>assistant<|channel|>final<|message|>"


@pytest.mark.parametrize(
    "completion",
    [
        f"{ANALYSIS}Hm.<|end|>{FINAL}{CODE}<|return|>",
        f"{ANALYSIS}First:\n{DRAFT}no.<|end|>{FINAL}{CODE}<|return|>",
        f"{ANALYSIS}ok<|end|><|start|>assistant<|channel|>final <|constrain|>python<|message|>{CODE}<|return|>",
        f"{ANALYSIS}ok<|end|>{FINAL}{CODE.rstrip()}<|return|>",
        f"{ANALYSIS}ok<|end|>{FINAL}{CODE}",
        f"<|channel|>final<|message|>{CODE}<|return|>",
        f"Draft {DRAFT}<|end|>{FINAL}{CODE}<|return|>",  # the prompt had opened the analysis
        f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>commentary to=functions.run <|constrain|>json<|message|>"
        f"{DRAFT}<|call|>{FINAL}{CODE}<|return|>",
        f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>commentary<|message|>{DRAFT}<|end|>{FINAL}{CODE}<|return|>",
        f"{ANALYSIS}no end marker<|channel|>final<|message|>{CODE}<|return|>",
        f"{FINAL}{DRAFT}<|end|>{FINAL}{CODE}<|return|>",
        f"analysisFirst try {DRAFT} wrong.assistantfinal{CODE}",
        f"<think>\nfirst {DRAFT}</think>\n{CODE}",
        f"first {DRAFT}</think>\n\n{CODE}",  # the prompt had opened the reasoning
        f"<think>\nopen ```python\ndef f(x): 1\n</think>\n{CODE}",
        f"<think>a</think>b {DRAFT}</think>{CODE}",
        f"<think>I end with `</think>` soon. {DRAFT}</think>{CODE}",
        f"<think></think>{CODE}",
        f"[THINK]a {DRAFT}[/THINK]{CODE}",
        f"{CODE}<|im_end|>",
    ],
)
def test_the_answer_behind_the_reasoning_is_taken(completion: str) -> None:
    found = extract(completion, "f").candidate
    assert found is not None
    assert found.source == "def f(x):\n    return x\n"
    assert not any("draft" in other for other in found.discarded) or completion.startswith("<think>a</think>b")


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        (f"{ANALYSIS}thinking {CODE}", "no_final_channel"),
        (f"{ANALYSIS}thinking {CODE}<|end|>", "no_final_channel"),
        (f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>commentary to=functions.run<|message|>{CODE}<|call|>", None),
        (f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>final", "no_final_channel"),
        (f"analysisWe need {CODE}", "no_final_channel"),
        (f"<think>\nI would write {CODE}", "unfinished_thinking"),
        ("<think>\n", "unfinished_thinking"),
        (f"{ANALYSIS}a<|end|>{FINAL}no code<|return|>", "no_fence"),
    ],
)
def test_reasoning_alone_is_no_answer(completion: str, reason: str | None) -> None:
    assert extract(completion, "f").reason == (reason or "no_final_channel")


def test_a_tag_inside_a_string_of_the_code_is_code() -> None:
    code = "```python\nTAG = '</think>'\ndef f(x):\n    return x\n```\n"
    assert split_reasoning(f"<think>a</think>\n{code}") == ("a", f"\n{code}")
    assert split_reasoning(code) == (None, code)
    channels = f"{ANALYSIS}a<|end|>{FINAL}```python\nEND = '<|end|>'\ndef f(x):\n    return END\n```\n<|return|>"
    assert extract(channels, "f").candidate is not None


def test_an_answer_that_was_split_by_ids_is_not_split_again() -> None:
    answer = "```python\ndef f(x):\n    return '''\n</think>\n'''\n```\n"
    assert extract("<think>a</think>" + answer, "f", answer=answer).candidate is not None


@pytest.mark.parametrize(
    ("completion", "reason"),
    [("<think>cut", "unfinished_thinking"), (f"{ANALYSIS}cut", "no_final_channel"), ("<think>a</think>", "empty")],
)
def test_an_empty_answer_says_what_it_lacks(completion: str, reason: str) -> None:
    assert extract(completion, "f", answer="").reason == reason


class CharacterTokenizer:
    """One token per special word or character: the two methods that are asked for, and decoding for the test."""

    def __init__(self, *special: str) -> None:
        self.special = special
        characters = [chr(i) for i in range(9, 127)]
        self.vocab = {text: i for i, text in enumerate([*characters, *special])}

    def get_vocab(self) -> dict[str, int]:
        return self.vocab

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        ids = []
        while text:
            token = next((s for s in self.special if text.startswith(s)), text[0])
            ids.append(self.vocab[token])
            text = text[len(token) :]
        return ids

    def plain(self, text: str) -> list[int]:
        return [self.vocab[character] for character in text]

    def decode(self, ids: tuple[int, ...]) -> str:
        texts = {i: text for text, i in self.vocab.items()}
        return "".join(texts[i] for i in ids)


THINK = CharacterTokenizer("<think>", "</think>", "<|im_end|>")
HARMONY = CharacterTokenizer(
    "<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>", "<|constrain|>"
)
THINK_MARKERS = ReasoningMarkers.from_tokenizer(THINK)
HARMONY_MARKERS = ReasoningMarkers.from_tokenizer(HARMONY)


def test_markers_are_looked_up_by_name() -> None:
    assert THINK_MARKERS.end_think == THINK.vocab["</think>"]
    assert HARMONY_MARKERS.final == tuple(HARMONY.plain("final"))
    assert THINK_MARKERS.known
    assert not ReasoningMarkers.from_tokenizer(CharacterTokenizer()).known


@pytest.mark.parametrize(
    ("text", "reasoning", "answer", "complete"),
    [
        ("<think>a</think>b", "a", "b", True),
        ("a</think>b", "a", "b", True),
        ("b", "", "b", True),
        ("<think>a", "a", "", False),
        ("<think>a</think>", "a", "", True),
        ("<think>a</think><think>c</think>b", "ac", "b", True),
        ("<think>a</think>say '</think>'", "a", "say '</think>'", True),
    ],
)
def test_think_tags_are_split_by_id(text: str, reasoning: str, answer: str, complete: bool) -> None:
    split = split_reasoning_ids(THINK.encode(text), THINK_MARKERS)
    assert (THINK.decode(split.reasoning_ids), THINK.decode(split.answer_ids)) == (reasoning, answer)
    assert split.complete is complete


def test_a_prompt_that_opened_the_reasoning_is_taken_into_account() -> None:
    split = split_reasoning_ids(THINK.encode("cut off here"), THINK_MARKERS, already_thinking=True)
    assert (split.answer_ids, split.complete) == ((), False)


def test_a_tag_spelled_in_ordinary_tokens_is_text() -> None:
    code = "TAG = '</think>'"
    ids = [*THINK.encode("<think>a"), *THINK.plain("</think>"), *THINK.encode("</think>"), *THINK.plain(code)]
    assert THINK.decode(split_reasoning_ids(ids, THINK_MARKERS).answer_ids) == code


@pytest.mark.parametrize(
    ("text", "reasoning", "answer", "complete"),
    [
        (f"{ANALYSIS}a<|end|>{FINAL}b<|return|>", "a", "b", True),
        (f"{ANALYSIS}a<|end|>{FINAL}b", "a", "b", True),
        (
            f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>final <|constrain|>python<|message|>b<|return|>",
            "a",
            "b",
            True,
        ),
        (
            f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>commentary to=f<|message|>c<|call|>{FINAL}b<|return|>",
            "ac",
            "b",
            True,
        ),
        (f"{ANALYSIS}a", "a", "", False),
        (f"{ANALYSIS}a<|end|>", "a", "", False),
        (f"{ANALYSIS}a<|end|><|start|>assistant<|channel|>fin", "a", "", False),
        ("b", "", "b", True),
    ],
)
def test_channels_are_split_by_id(text: str, reasoning: str, answer: str, complete: bool) -> None:
    split = split_reasoning_ids(HARMONY.encode(text), HARMONY_MARKERS)
    shown = HARMONY.decode(split.reasoning_ids).replace("assistant", "")
    assert (shown, HARMONY.decode(split.answer_ids), split.complete) == (reasoning, answer, complete)


def test_a_channel_spelled_in_ordinary_tokens_opens_nothing() -> None:
    fake = HARMONY.plain("<|channel|>final<|message|>```python")
    ids = [*HARMONY.encode(ANALYSIS), *fake, *HARMONY.encode("<|end|>" + FINAL + "b<|return|>")]
    split = split_reasoning_ids(ids, HARMONY_MARKERS)
    assert HARMONY.decode(split.answer_ids) == "b"
