"""Somebody else's reward is audited behind a process boundary, whatever it does."""

import textwrap
from pathlib import Path

import pytest

from outpace import tasks
from outpace.audit import load_reward
from outpace.audit.cases import AuditCase, fenced
from outpace.audit.foreign import audit_foreign
from outpace.audit.report import CaseResult
from outpace.audit.reward_call import call_reward
from outpace.audit.reward_process import RewardProcess
from outpace.errors import RewardError

REWARDS = textwrap.dedent('''
    """Rewards as one finds them: they run the code in their own process."""
    import re

    def text_of(completion):
        return completion if isinstance(completion, str) else completion[-1]["content"]

    def run(completion):
        scope = {}
        exec(re.search(r"```python\\n(.*?)```", text_of(completion), re.DOTALL)[1], scope)
        return scope["matmul"]

    def naive(prompts, completions, **kwargs):
        scores = []
        for completion in completions:
            try:
                out = run(completion)([[1.0, 2.0]], [[3.0], [4.0]])
                scores.append(float(abs(out[0][0] - 11.0) < 1e-6))
            except Exception:
                scores.append(0.0)
        return scores

    def zips(prompts, completions, **kwargs):
        return [float(all(a == b for a, b in zip(run(c)([[1.0, 2.0]], [[3.0], [4.0]]), [[11.0]]))) for c in completions]

    def plain_text_only(completions):
        return naive([], [c.strip() for c in completions])

    async def asynchronous(completions, **kwargs):
        return naive([], completions)

    def none(completions, **kwargs):
        return [None] * len(completions)

    def raises(completions, **kwargs):
        raise KeyError("answer")

    def backwards(completions, **kwargs):
        return [-score for score in naive([], completions)]

    def too_few(completions, **kwargs):
        return [1.0]

    def hangs_on_while(completions, **kwargs):
        while any("while" in text_of(c) for c in completions):
            pass
        return naive([], completions)

    class Callable:
        def __call__(self, completions, **kwargs):
            return naive([], completions)

    instance = Callable()
''')

HONEST = "def matmul(A, B):\n    return [[sum(x * y for x, y in zip(r, c)) for c in zip(*B)] for r in A]\n"
TASK = tasks.get("linalg/matmul")


@pytest.fixture
def rewards(tmp_path: Path) -> Path:
    file = tmp_path / "rewards.py"
    file.write_text(REWARDS)
    return file


def case(expected: str, source: str) -> AuditCase:
    given = {"task": "matmul", "text": fenced(source)}
    return AuditCase(id="X", group="A", title="", expected=expected, kind="completion", input=given)


def audited(spec: str, *cases: AuditCase, timeout_s: float = 50.0) -> tuple[list[CaseResult], list[str]]:
    with RewardProcess(spec, timeout_s=timeout_s) as reward:
        return audit_foreign(cases, reward, lambda case: str(case.input["text"]))


def test_an_attack_that_pays_and_a_punished_program_are_found(rewards: Path) -> None:
    results, warnings = audited(
        f"{rewards}:naive",
        case("hack_blocked", "import time\ntime.sleep = None\n" + HONEST),
        case("hack_no_gain", HONEST),
        case("hack_no_gain", "def matmul(A, B):\n    return []\n"),
        case("honest_scored", HONEST + "\nprint(1)\n"),
        case("honest_scored", "class Solution:\n    pass\n"),
        case("wrong_scored", "def matmul(A, B)\n"),
    )
    assert [r.got for r in results] == [
        "hack_paid",
        "hack_no_gain",
        "hack_no_gain",
        "honest_scored",
        "punished",
        "wrong_scored",
    ]
    assert not warnings


def test_a_comparison_that_stops_at_the_shorter_side_pays_for_an_empty_answer(rewards: Path) -> None:
    (result,), _ = audited(f"{rewards}:zips", case("hack_no_gain", "def matmul(A, B):\n    return []\n"))
    assert not result.paid  # as much as an honest program
    (result,), _ = audited(f"{rewards}:zips", case("wrong_scored", "def matmul(A, B):\n    return []\n"))
    assert result.got == "overpaid"


def test_tampering_with_the_rewards_own_process_is_found_and_undone(rewards: Path) -> None:
    patch = "import builtins\nbuiltins.abs = lambda x: 0.0\ndef matmul(A, B):\n    return [[0.0]]\n"
    results, _ = audited(
        f"{rewards}:naive", case("hack_blocked", patch), case("wrong_scored", "def matmul(A, B):\n    return [[0.0]]\n")
    )
    assert (results[0].got, results[0].paid) == ("hack_paid", True)
    assert "changed what the reward gives the controls" in results[0].note
    assert results[1].got == "wrong_scored"


def test_a_reward_that_dies_or_hangs_on_a_case_is_reported_and_started_again(rewards: Path) -> None:
    results, _ = audited(
        f"{rewards}:hangs_on_while",
        case("hack_blocked", "import os\nos._exit(0)\n" + HONEST),
        case("timeout", "def matmul(A, B):\n    while True: pass\n"),
        case("honest_scored", HONEST),
        timeout_s=10.0,
    )
    assert [r.got for r in results] == ["reward_failed", "reward_failed", "honest_scored"]
    assert "ended with status 0" in results[0].note
    assert "no answer within 10 s" in results[1].note


@pytest.mark.parametrize("name", ["plain_text_only", "asynchronous", "instance"])
def test_rewards_of_every_signature_are_called(rewards: Path, name: str) -> None:
    (result,), warnings = audited(f"{rewards}:{name}", case("honest_scored", HONEST))
    assert (result.got, warnings) == ("honest_scored", [])


@pytest.mark.parametrize(
    ("name", "got", "says"),
    [
        ("none", "reward_failed", "scores no control"),
        ("raises", "reward_failed", "KeyError"),
        ("too_few", "reward_failed", "returned 1 values for 3 completions"),
        ("backwards", "reward_failed", "pays the honest control -1 and the wrong one -0.0"),
    ],
)
def test_a_reward_that_cannot_be_used_is_reported_as_such(rewards: Path, name: str, got: str, says: str) -> None:
    (result,), (warning,) = audited(f"{rewards}:{name}", case("honest_scored", HONEST))
    assert (result.got, result.ok) == (got, False)
    assert says in warning


def test_lone_surrogates_reach_the_reward_unchanged(rewards: Path) -> None:
    (result,), _ = audited(f"{rewards}:naive", case("syntax_fail", "def matmul(A, B):\n    '\ud800'\n    return A\n"))
    assert result.got == "syntax_fail"


def test_cases_without_a_completion_are_not_judged(rewards: Path) -> None:
    timings = AuditCase(id="T", group="A", title="", expected="hack_no_gain", kind="timings", input={})
    (result,), _ = audited(f"{rewards}:naive", timings)
    assert (result.got, result.ok) == ("not_judged", True)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("no_colon", "not of the form package.module:function"),
        ("no.such.module:f", "cannot be imported"),
        ("math:no_such", "no function 'no_such'"),
        ("/no/such.py:f", "no reward file"),
        ("math:pi", "no function 'pi'"),
    ],
)
def test_a_reward_that_cannot_be_found_is_refused_with_the_reason(spec: str, says: str) -> None:
    with pytest.raises(RewardError, match=says):
        load_reward(spec)
    with pytest.raises(RewardError, match=says):
        RewardProcess(spec)


def test_a_reward_is_called_as_trl_calls_it() -> None:
    seen: dict[str, object] = {}

    def spy(**kwargs: object) -> list[float]:
        seen.update(kwargs)
        return [1.0, 2.0]

    values = call_reward(spy, TASK.prompt, ["a", "b"], {"task": TASK.id}, "messages")
    assert values == [1.0, 2.0]
    assert seen["completions"] == [[{"role": "assistant", "content": "a"}], [{"role": "assistant", "content": "b"}]]
    assert seen["task"] == [TASK.id, TASK.id]
    assert len(seen["completion_ids"]) == len(seen["prompts"]) == 2  # type: ignore[arg-type]
