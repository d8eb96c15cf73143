import pytest

from outpace.adapters.scoring import Scorer
from outpace.errors import RewardError
from outpace.schema import Case, Outcome, Task
from outpace.testing import ScriptedGrader, verdict


def same(actual, expected, args):
    return actual == expected


def task(name="made/up", text="Write f."):
    prompt = ({"role": "user", "content": text},)
    return Task(id=name, prompt=prompt, entry_point="f", compare=same, cases=(Case(args=(1,), expected=1),))


THINK, END_THINK, EOS = 1, 2, 3


class CharTokenizer:
    """One id per character, and special tokens that decoding drops, as TRL decodes."""

    eos_token_id = EOS

    def __init__(self, opens_thinking=False):
        self.opens_thinking = opens_thinking

    def get_vocab(self):
        return {"<think>": THINK, "</think>": END_THINK, "<eos>": EOS}

    def encode(self, text, *, add_special_tokens=True):
        return [{"\1": THINK, "\2": END_THINK, "\3": EOS}.get(c, ord(c)) for c in text]

    def decode(self, ids, skip_special_tokens=False):
        return "".join(chr(i) for i in ids if i > 3)

    def apply_chat_template(self, messages, add_generation_prompt, tokenize):
        return messages[0]["content"] + ("\1" if self.opens_thinking else "")


def test_reasoning_is_split_off_by_token_ids_also_when_the_prompt_opened_it():
    for opens, text in ((False, "\1hm\2answer\3"), (True, "hm\2answer\3")):
        tokenizer = CharTokenizer(opens)
        scorer = Scorer(ScriptedGrader({}), [task()], "default", tokenizer=tokenizer)
        ids = tokenizer.encode(text)
        one = scorer.take_apart(task(), tokenizer.decode(ids), ids)
        assert (one.answer, one.reasoning, len(one.reasoning_ids), one.finished) == ("answer", "hm", 2, True)


def test_thinking_that_was_cut_off_leaves_no_answer_and_its_draft_is_not_graded():
    tokenizer = CharTokenizer(opens_thinking=True)
    seen = []

    class Spy(ScriptedGrader):
        def grade_group(self, completions_G, task, *, finished_G=None, answers_G=None):
            seen.append((finished_G, answers_G))
            return [verdict(Outcome.NO_CODE)] * len(completions_G)

    draft = "```python\ndef f(x): return 1\n```"
    scorer = Scorer(Spy({}), [task()], {"thinking_length": 1.0}, tokenizer=tokenizer)
    vectors = scorer.score_groups([("made/up", [draft], [tokenizer.encode(draft)])])
    assert seen == [([False], [""])]
    assert vectors[0][0].components["thinking_length"] == 0.0


def test_without_a_tokenizer_the_text_is_split_and_the_grader_splits_it_too():
    seen = []

    class Spy(ScriptedGrader):
        def grade_group(self, completions_G, task, *, finished_G=None, answers_G=None):
            seen.append(answers_G)
            return [verdict()] * len(completions_G)

    scorer = Scorer(Spy({}), [task()], {"thinking_length": 1.0})
    (vectors,) = scorer.score_groups([("made/up", ["<think>a b c</think>done", "done"], None)])
    assert [v.total for v in vectors] == [0.3, -1.0]
    assert seen == [[None, None]]


def test_a_sample_that_could_not_be_graded_has_no_total():
    assert Scorer(ScriptedGrader({}), [task()]).score("made/up", "x").total is None


def test_an_unknown_task_is_named():
    with pytest.raises(RewardError, match="'other/task' is not among the 1 tasks"):
        Scorer(ScriptedGrader({}), [task()]).score("other/task", "x")
