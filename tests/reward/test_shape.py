import pytest

from outpace.reward import build
from outpace.reward.shape import closed_fences
from outpace.schema import Outcome

from .graded import UNTIMED, sample


def total(config, completion, **fields):
    return build(config).score([sample(completion=completion, **fields)])[0].total


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("def f(): pass", 0),
        ("```python\nx\n```", 1),
        ("```\nx\n```\nand\n~~~py\ny\n~~~\n", 2),
        ("```python\nx\n", 0),
        ("```python\nx\n``", 0),
        ("````python\n```\nx\n```\n````", 1),
        ("```python", 0),
        ("1. Solution:\n\n    ```python\n    x\n    ```\n", 1),
        ("> ```\n> x\n> ```\n", 1),
        ("    indented\n", 0),
        ("text with ``` inside", 0),
    ],
)
def test_closed_fences_are_counted_as_commonmark_does(text, count):
    assert closed_fences(text) == count


@pytest.mark.parametrize(
    ("completion", "expected"),
    [("```\nx\n```", 1.0), ("```\nx\n```\n```\ny\n```", 0.5), ("x", 0.0), ("<think>```\nx\n```</think>\nno code", 0.0)],
)
def test_fence_pays_for_one_closed_block_in_the_answer(completion, expected):
    assert total({"fence": 1.0}, completion) == expected


def test_answer_format_matches_the_whole_answer():
    config = {"answer_format": {"pattern": r"```python\n.*```\s*"}}
    assert total(config, "```python\nx\n```\n") == 1.0
    assert total(config, "Sure! ```python\nx\n```\n") == 0.0
    assert total(config, "<think>hm</think>```python\nx\n```") == 1.0
    with pytest.raises(ValueError, match="not a regular expression"):
        build({"answer_format": {"pattern": "("}})


@pytest.mark.parametrize(
    ("completion", "expected"),
    [("Done.", 1.0), ("Done", 0.5), (" Done.", 0.5), (" Done", 0.0), ("Done. \n", 1.0), ("", 0.0)],
)
def test_prose_format_pays_half_for_the_full_stop_and_half_for_no_leading_space(completion, expected):
    assert total({"prose_format": 1.0}, completion) == expected


@pytest.mark.parametrize(("words", "expected"), [(0, -1), (4, -1), (5, 1), (49, 1), (50, 0.5), (500, 0.5)])
def test_length_in_words_by_bands(words, expected):
    assert total({"length_words": 1.0}, "word " * words) == expected


def test_length_in_tokens_needs_ids():
    config = {"length_tokens": {"bands": [[0, -1], [16, 1], [512, 0]]}}
    assert total(config, "x", completion_ids=tuple(range(15))) == -1
    assert total(config, "x", completion_ids=tuple(range(16))) == 1
    assert total(config, "x", completion_ids=tuple(range(512))) == 0
    assert total(config, "x") is None


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (80, 0), (85, -0.25), (90, -0.5), (100, -1), (150, -1)])
def test_the_soft_overlong_penalty_falls_in_a_line(length, expected):
    config = {"overlong": {"max_tokens": 100, "buffer_tokens": 20}}
    assert total(config, "x", completion_ids=tuple(range(length))) == expected


def test_overlong_refuses_a_buffer_larger_than_the_limit():
    with pytest.raises(ValueError, match="buffer_tokens must be above 0"):
        build({"overlong": {"max_tokens": 10, "buffer_tokens": 20}})


@pytest.mark.parametrize(
    ("ids", "expected"), [((1, 2, 3, 4), 0.0), ((1, 1, 1, 1), -2 / 3), ((1, 2, 1, 2, 1), -0.5), ((1,), 0.0)]
)
def test_repetition_is_the_share_of_repeated_stretches(ids, expected):
    assert total({"repetition": {"ngram": 2}}, "x", completion_ids=ids) == pytest.approx(expected)


def test_repetition_reads_words_when_ids_are_unknown():
    assert total({"repetition": {"ngram": 1}}, "a a a a") == -0.75


A = "def f(x):\n    y = x + 1\n    return y\n"
A_RENAMED = 'def f(value):\n    """Adds."""\n    total = value + 1  # one\n    return total\n'
B = "def f(x):\n    return x + 1\n"


def test_a_collapsed_group_earns_less_diversity():
    rewards = build({"group_diversity": 1.0})
    group = [sample(source=source) for source in (A, A_RENAMED, A, B)]
    assert [v.total for v in rewards.score(group)] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])
    collapsed = rewards.score([sample(source=A)] * 4)
    assert sum(v.total for v in collapsed) == 1.0


def test_being_different_is_no_way_round_being_right():
    group = [sample(source=A), sample(Outcome.WRONG, source=B), sample(Outcome.NO_CODE), sample(None)]
    assert [v.total for v in build({"group_diversity": 1.0}).score(group)] == [1.0, 0.0, 0.0, None]
    loose = build({"group_diversity": {"among": "security"}}).score(group)
    assert [v.total for v in loose] == [1.0, 1.0, 0.0, None]
    with pytest.raises(ValueError, match="must be syntax, security or accuracy"):
        build({"group_diversity": {"among": "luck"}})


def test_text_rewards_do_not_depend_on_the_task_being_timed():
    assert total({"fence": 1.0}, "```\nx\n```", task=UNTIMED) == 1.0
