import asyncio
from types import SimpleNamespace

import pytest

from outpace.adapters.trl import async_reward_funcs, dataset, reward_funcs
from outpace.errors import RewardError
from outpace.schema import Outcome
from outpace.testing import ScriptedGrader, verdict

from .test_scoring import task

RIGHT, WRONG, LOST = "right", "wrong", "lost"


def grader():
    return ScriptedGrader({RIGHT: verdict(), WRONG: verdict(Outcome.WRONG, passed=5), LOST: None})


def call(functions, completions, **columns):
    """Call the functions as TRL does: one after another, on the very same lists."""
    completions = [[{"role": "assistant", "content": c}] for c in completions]
    columns = {"prompts": [], "completion_ids": None, "task_id": ["made/up"] * len(completions), **columns}
    return {f.__name__: f(completions=completions, **columns) for f in functions}


def test_every_component_is_a_function_of_its_own_name():
    assert [f.__name__ for f in reward_funcs(grader(), [task()])] == ["syntax", "security", "accuracy", "speed"]


def test_a_batch_is_graded_once_however_many_components_ask():
    fake = grader()
    values = call(reward_funcs(fake, [task()]), [RIGHT, WRONG])
    assert values == {"syntax": [1, 1], "security": [1, 1], "accuracy": [2, 0.5], "speed": [None, None]}
    assert fake.graded == [RIGHT, WRONG]


def test_the_next_batch_is_graded_again_even_when_it_is_equal():
    fake = grader()
    functions = reward_funcs(fake, [task()])
    call(functions, [RIGHT])
    call(functions, [RIGHT])
    assert fake.graded == [RIGHT, RIGHT]


def test_a_completion_that_we_failed_to_grade_is_none_in_every_component():
    values = call(reward_funcs(grader(), [task()]), [RIGHT, LOST])
    assert [column[1] for column in values.values()] == [None] * 4


def test_values_carry_their_weight_unless_trl_is_to_weigh_them():
    rewards = {"accuracy": 0.5, "syntax": 3.0}
    assert call(reward_funcs(grader(), [task()], rewards), [RIGHT]) == {"accuracy": [1.0], "syntax": [3.0]}
    plain = call(reward_funcs(grader(), [task()], rewards, weighted=False), [RIGHT])
    assert plain == {"accuracy": [2.0], "syntax": [1.0]}


def test_a_curriculum_follows_the_trainers_step():
    rewards = {"accuracy": {"schedule": {0: 0.0, 10: 1.0}}}
    functions = reward_funcs(grader(), [task()], rewards)
    state = SimpleNamespace(global_step=5)
    assert call(functions, [RIGHT], trainer_state=state) == {"accuracy": [1.0]}
    assert call(functions, [RIGHT]) == {"accuracy": [2.0]}


@pytest.mark.parametrize(("size", "groups"), [(None, [4]), (2, [2, 2])])
def test_num_generations_tells_two_groups_of_one_task_apart(size, groups):
    seen = []

    class Spy(ScriptedGrader):
        def grade_group(self, completions_G, task, **keywords):
            seen.append(len(completions_G))
            return [verdict()] * len(completions_G)

    call(reward_funcs(Spy({}), [task()], num_generations=size), [RIGHT] * 4)
    assert seen == groups


def test_neighbours_of_different_tasks_are_different_groups():
    seen = []

    class Spy(ScriptedGrader):
        def grade_group(self, completions_G, task, **keywords):
            seen.append((task.id, len(completions_G)))
            return [verdict()] * len(completions_G)

    functions = reward_funcs(Spy({}), [task("a/1"), task("a/2")])
    call(functions, [RIGHT] * 3, task_id=["a/1", "a/1", "a/2"])
    assert seen == [("a/1", 2), ("a/2", 1)]


def test_plain_text_completions_are_scored_too():
    (accuracy,) = reward_funcs(grader(), [task()], {"accuracy": 1.0})
    assert accuracy(completions=[RIGHT], prompts=["p"], task_id=["made/up"]) == [2.0]


def test_a_data_set_without_task_ids_is_an_error_with_its_remedy():
    (accuracy,) = reward_funcs(grader(), [task()], {"accuracy": 1.0})
    with pytest.raises(RewardError, match="no column task_id"):
        accuracy(completions=[RIGHT], prompts=["p"])


def test_figures_of_a_reward_are_logged_through_trl():
    logged = {}
    rewards = {"mine": {"reward": f"{__name__}.constant"}}
    call(reward_funcs(grader(), [task()], rewards), [RIGHT], log_metric=logged.__setitem__)
    assert logged["mine/failures"] == 0.0
    assert logged["reward/mine/mean"] == 1.0
    assert logged["groups/no_signal"] == 1.0


def test_a_reward_that_teaches_nothing_is_pointed_out_once(caplog):
    functions = reward_funcs(grader(), [task()], {"accuracy": 1.0, "syntax": 1.0})
    for _ in range(8):
        call(functions, [RIGHT, WRONG])
    assert [record.message for record in caplog.records] == [
        "The reward 'accuracy' makes up 100% of the variance within groups, so the other rewards hardly count; "
        "lower its weight or clip it.",
        "The reward 'syntax' is 1 for every sample, so it teaches nothing at present.",
    ]


def constant(group):
    return [1.0 for _ in group]


def test_async_functions_that_arrive_together_share_one_grading():
    fake = grader()
    functions = async_reward_funcs(fake, [task()])
    assert all(asyncio.iscoroutinefunction(function) for function in functions)
    completions = [RIGHT, WRONG]

    async def gather():
        calls = (f(completions=completions, task_id=["made/up"] * 2) for f in functions)
        return await asyncio.gather(*calls)

    assert asyncio.run(gather()) == [[1, 1], [1, 1], [2, 0.5], [None, None]]
    assert fake.graded == [RIGHT, WRONG]


def test_the_data_set_has_prompts_and_task_ids():
    pytest.importorskip("datasets")
    rows = dataset([task("a/1"), task("a/2", "Write g.")])
    assert rows.column_names == ["prompt", "task_id"]
    assert rows[1] == {"prompt": [{"role": "user", "content": "Write g."}], "task_id": "a/2"}
