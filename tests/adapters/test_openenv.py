"""Against the real openenv; it is not one of our dependencies, so CI skips this file."""

import pytest

pytest.importorskip("openenv.core", reason="openenv is not installed here")

from outpace import tasks
from outpace.adapters.scoring import Scorer
from outpace.errors import RewardError
from outpace.grade import Grader

ANSWER = "```python\nfrom itertools import accumulate\n\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n```"


def test_an_episode_is_a_question_and_one_answer():
    from outpace.adapters.openenv import Answer, OutpaceEnvironment

    with Grader(workers=1) as grader:
        environment = OutpaceEnvironment(Scorer(grader, tasks.load("sequences")))
        question = environment.reset(task_id="sequences/prefix_sums")
        assert (question.done, question.prompt[0]["role"]) == (False, "user")
        graded = environment.step(Answer(completion=ANSWER))
        assert graded.done
        assert graded.reward > 4.0
        assert graded.components["accuracy"] == 2.0
        with pytest.raises(RewardError, match="call reset first"):
            environment.step(Answer(completion=ANSWER))


def test_the_environment_is_served_over_http():
    from fastapi.testclient import TestClient

    from outpace.adapters.openenv import application

    with Grader(workers=1) as grader:
        client = TestClient(application(Scorer(grader, tasks.load("sequences"))))
        question = client.post("/reset", json={"seed": 1}).json()["observation"]
        assert question["task_id"].startswith("sequences/")
