import logging
import math

import pytest

from outpace.errors import RewardError
from outpace.reward import build
from outpace.reward.probe import check_sign, probe_group
from outpace.reward.user_code import load_user_reward
from outpace.schema import Outcome

from .graded import sample

HERE = __name__


def ours(group):
    return [float(len(one.completion)) for one in group]


def trl_style(prompts, completions, **columns):
    assert columns["task_id"] == ["made/up"] * len(completions) or columns["task_id"][0].startswith("probe/")
    return [float(len(c[0]["content"])) for c in completions]


def only_what_it_names(completions, verdict):
    return [1.0 if v.outcome is Outcome.CORRECT else 0.0 for v in verdict]


def with_option(group, *, factor):
    return [factor for _ in group]


async def in_async(prompts, completions, **columns):
    return [2.0] * len(completions)


class Stateful:
    def __init__(self, start=0.0):
        self.start = start

    def __call__(self, group):
        return [self.start for _ in group]


class Unmakeable:
    def __init__(self):
        raise OSError("no disk")


def needs_a_column(completions, solution):
    return [0.0 for _ in completions]


def two_arguments(group, other):
    return []


def raises(group):
    raise ZeroDivisionError("by nothing")


def too_short(group):
    return [1.0]


def infinite(group):
    return [math.inf for _ in group]


def words(group):
    return ["good" for _ in group]


def a_number(group):
    return 1.0


def distance(group):
    return [0.0 if one.verdict.outcome is Outcome.CORRECT else 5.0 for one in group]


not_callable = 7


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({f"{HERE}.ours": 1.0}, 3.0),
        ({f"{HERE}:ours": 1.0}, 3.0),
        ({f"{HERE}.trl_style": 2.0}, 6.0),
        ({f"{HERE}.only_what_it_names": 1.0}, 1.0),
        ({f"{HERE}.with_option": {"factor": 4.0}}, 4.0),
        ({f"{HERE}.in_async": 1.0}, 2.0),
        ({f"{HERE}.Stateful": {"start": 5.0, "weight": 0.5}}, 2.5),
        ({"mine": {"reward": f"{HERE}.ours"}}, 3.0),
    ],
)
def test_code_of_ones_own_is_named_by_its_dotted_path(entry, expected):
    with build(entry) as rewards:
        rewards.check()
        assert rewards.score([sample(completion="abc")])[0].total == expected


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_module_anywhere.f", "cannot be imported"),
        (f"{HERE}.missing", "has no 'missing'"),
        (f"{HERE}.not_callable", "is not callable"),
        (f"{HERE}.needs_a_column", "missing a required argument: 'solution'"),
        (f"{HERE}.two_arguments", "must take one group of samples"),
        (f"{HERE}.with_option", "must take one group of samples"),
        (f"{HERE}.Unmakeable", "could not be made: OSError: no disk"),
    ],
)
def test_what_cannot_be_called_is_refused_when_the_recipe_is_read(path, words):
    with pytest.raises(RewardError, match=words) as caught:
        build({path: 1.0})
    assert "\n" not in str(caught.value)


def test_an_option_that_the_code_does_not_take_is_refused():
    with pytest.raises(RewardError, match="colour"):
        build({f"{HERE}.ours": {"colour": "red"}})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("raises", "raised ZeroDivisionError on a probe call: by nothing"),
        ("too_short", "returned 1 values for 4 samples"),
        ("infinite", "returned inf; give a finite number"),
        ("words", "returned 'good'; give a number or None"),
        ("a_number", "must return a list, got float"),
    ],
)
def test_code_that_misbehaves_is_found_before_training_starts(name, words):
    rewards = build({f"{HERE}.{name}": 1.0})
    with pytest.raises(RewardError, match=words):
        rewards.check()


@pytest.mark.parametrize("name", ["raises", "too_short", "infinite", "words", "a_number"])
def test_code_that_fails_during_training_is_counted_logged_once_and_worth_none(name, caplog):
    rewards = build({"accuracy": 1.0, f"{HERE}.{name}": 1.0})
    with caplog.at_level(logging.ERROR, logger="outpace.reward"):
        for _ in range(3):
            vectors = rewards.score([sample(), sample(Outcome.WRONG)])
            assert [v.components[f"{HERE}.{name}"] for v in vectors] == [None, None]
            assert vectors[0].total == 2.0
    assert rewards.metrics()[f"{HERE}.{name}/failures"] == 3.0
    assert len(caplog.records) == 1
    assert "Traceback" in caplog.text


def test_samples_that_we_failed_to_grade_never_reach_user_code():
    reward = load_user_reward(f"{HERE}.only_what_it_names")
    assert reward([sample(None), sample(), sample(None), sample(Outcome.WRONG)]) == [None, 1.0, None, 0.0]
    assert reward([sample(None)]) == [None]


def test_a_reward_with_the_wrong_sign_is_found_with_a_known_good_and_a_known_bad_sample(caplog):
    rewards = build({f"{HERE}.distance": 1.0})
    with pytest.raises(RewardError, match="check its sign"):
        check_sign(rewards)
    rewards.check()
    assert "check its sign" in caplog.text
    check_sign(build("default"))
    check_sign(build("article"))
    with pytest.raises(RewardError, match="cannot be checked"):
        check_sign(build("default"), bad=sample(None))


def test_a_single_reward_can_be_checked_for_its_sign():
    check_sign(load_user_reward(f"{HERE}.only_what_it_names"))


def test_the_probe_group_covers_good_wrong_forbidden_and_nothing():
    assert [one.verdict.outcome for one in probe_group()] == [
        Outcome.CORRECT,
        Outcome.WRONG,
        Outcome.FORBIDDEN,
        Outcome.NO_CODE,
    ]
