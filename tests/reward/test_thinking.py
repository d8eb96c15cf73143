import pytest

from outpace.reward import build
from outpace.reward.reading import ThoughtState, answer_of, thought_of
from outpace.reward.thinking import sentence_count
from outpace.schema import Outcome

from .graded import sample

CODE = "```python\ndef f(x):\n    return x\n```\n"


def thinking(words, tokens, *, closed=True):
    """A completion whose reasoning is `words`, of `tokens` token ids, as a caller with ids would split it."""
    return sample(
        completion=f"<think>{words}</think>{CODE}" if closed else f"<think>{words}",
        completion_ids=tuple(range(tokens + 20)),
        reasoning_ids=tuple(range(tokens)),
        answer=CODE if closed else None,
        finished=closed,
    )


NOT_THINKING = sample(completion=CODE, completion_ids=(1, 2, 3), answer=CODE)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (NOT_THINKING, -1.0),
        (thinking("x", 1), 0.3),
        (thinking("x", 9), 0.3),
        (thinking("x?", 9), 0.3),
        (thinking("x", 10), 0.7),
        (thinking("x?", 10), 0.8),
        (thinking("x", 29), 0.7),
        (thinking("x", 30), 1.0),
        (thinking("Wait, x", 30), 1.1),
        (thinking("The waiter came", 30), 1.0),
        (thinking("x", 500, closed=False), 0.0),
        (thinking("\n\n", 1), -1.0),
    ],
)
def test_thinking_length_by_bands_of_tokens(one, expected):
    assert build({"thinking_length": 1.0}).score([one])[0].total == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (NOT_THINKING, -0.5),
        (thinking("x", 5), 0.3),
        (thinking("x", 10), 0.5),
        (thinking("x", 20), 0.6),
        (thinking("One thing. Another thing.", 20), 0.8),
        (thinking("One thing. Another thing?", 20), 0.9),
        (thinking("First one thing. Then another thing?", 20), 1.0),
        (thinking("First one thing. Then another thing?", 12), 0.9),
        (thinking("Then? And then?", 500, closed=False), 0.0),
    ],
)
def test_thinking_depth_adds_up_what_it_finds(one, expected):
    assert build({"thinking_depth": 1.0}).score([one])[0].total == pytest.approx(expected)


def test_bands_and_cut_off_are_settings():
    rewards = build({"thinking_length": {"bands": [[0, 0.0], [5, 2.0]], "cut_off": -0.25, "question_bonus": 0}})
    group = [thinking("x?", 4), thinking("x?", 5), thinking("x", 5, closed=False)]
    assert [vector.total for vector in rewards.score(group)] == [0.0, 2.0, -0.25]


@pytest.mark.parametrize("bands", [[], [[5, 1.0], [0, 0.5]], [[0, 1.0], [0, 0.5]]])
def test_bands_that_do_not_ascend_are_refused(bands):
    with pytest.raises(ValueError, match="ascending order"):
        build({"thinking_length": {"bands": bands}})


@pytest.mark.parametrize(
    ("completion", "state", "tokens", "answer"),
    [
        (CODE, ThoughtState.ABSENT, 0, CODE),
        ("<think>a b c</think>done", ThoughtState.CLOSED, 3, "done"),
        ("a b c</think>done", ThoughtState.CLOSED, 3, "done"),
        ("<think>a b</think>c</think>done", ThoughtState.CLOSED, 3, "done"),
        ("<think>a b c", ThoughtState.CUT_OFF, 3, ""),
        ("<think>\n\n</think>done", ThoughtState.ABSENT, 0, "done"),
        (
            "<|channel|>analysis<|message|>a b c<|end|><|start|>assistant<|channel|>final<|message|>done",
            ThoughtState.CLOSED,
            4,
            "done",
        ),
        ("<|channel|>analysis<|message|>a b c", ThoughtState.CUT_OFF, 3, ""),
    ],
)
def test_a_sample_that_nobody_split_is_read_by_the_markers_in_its_text(completion, state, tokens, answer):
    one = sample(completion=completion)
    assert (thought_of(one).state, thought_of(one).tokens, answer_of(one)) == (state, tokens, answer)


def test_a_split_by_ids_holds_when_decoding_dropped_the_markers():
    one = sample(
        completion="analysisCount rows. Then columns?assistantfinal" + CODE,
        completion_ids=tuple(range(60)),
        reasoning_ids=tuple(range(31)),
        answer=CODE,
    )
    assert thought_of(one).tokens == 31
    assert build({"thinking_length": 1.0}).score([one])[0].total == pytest.approx(1.1)
    assert answer_of(one) == CODE


def test_reasoning_text_given_by_the_caller_is_used_as_it_is():
    one = sample(completion="whatever", reasoning="a b c", answer="done")
    assert (thought_of(one).state, thought_of(one).tokens) == (ThoughtState.CLOSED, 3)
    cut = sample(completion="whatever", reasoning="a b c")
    assert (thought_of(cut).state, answer_of(cut)) == (ThoughtState.CUT_OFF, "")


@pytest.mark.parametrize("answer", [None, "", "\n"])
def test_reasoning_without_an_answer_after_it_was_cut_off(answer):
    one = sample(completion="a b c", completion_ids=(1, 2), reasoning_ids=(1, 2), answer=answer, finished=False)
    assert thought_of(one).state is ThoughtState.CUT_OFF


def test_empty_reasoning_ids_beside_an_answer_mean_no_thinking():
    one = sample(completion=" " + CODE, completion_ids=(1, 2), reasoning_ids=(), answer=CODE)
    assert thought_of(one).state is ThoughtState.ABSENT


def test_a_sample_that_we_failed_to_grade_has_no_thinking_reward():
    one = sample(None, completion="<think>a</think>b")
    assert build({"thinking_length": 1.0, "thinking_depth": 1.0}).score([one])[0].total is None


def test_thinking_is_scored_whatever_the_program_did():
    one = sample(Outcome.WRONG, completion=f"<think>a b c</think>{CODE}")
    assert build({"thinking_length": 1.0}).score([one])[0].total == 0.3


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("a. b", 2), ("a.b", 1), ("...", 0), ("a?! b! 3.", 2)])
def test_sentences_are_counted(text, count):
    assert sentence_count(text) == count
