"""outpace's tasks as an OpenEnv environment: `reset` asks for a program, `step` grades the answer and ends the episode.

`application` serves it over HTTP and WebSocket. An episode is one answer, so group rewards see groups of one. Importing
this file imports openenv.
"""

import random
from typing import Any
from uuid import uuid4

from openenv.core.env_server import create_app  # type: ignore[import-not-found,unused-ignore]
from openenv.core.env_server.interfaces import Environment  # type: ignore[import-not-found,unused-ignore]
from openenv.core.env_server.types import Action, Observation, State  # type: ignore[import-not-found,unused-ignore]
from pydantic import Field

from outpace.adapters.scoring import Scorer
from outpace.errors import InfrastructureError, RewardError


class Answer(Action):  # type: ignore[misc,unused-ignore]
    """What the model wrote."""

    completion: str = Field(description="The whole completion, code block included")


class Question(Observation):  # type: ignore[misc,unused-ignore]
    """A task's prompt; after an answer also what it earned."""

    task_id: str = ""
    prompt: list[dict[str, str]] = Field(default_factory=list)
    components: dict[str, float | None] = Field(default_factory=dict)


class OutpaceEnvironment(Environment):  # type: ignore[misc,unused-ignore]
    """One task for each episode: the one named by `task_id`, else a random one by `seed`."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, scorer: Scorer) -> None:
        super().__init__()
        self._scorer = scorer
        self._state = State(episode_id=str(uuid4()), step_count=0)
        self._task_id: str | None = None

    def reset(self, seed: int | None = None, episode_id: str | None = None, **options: Any) -> Question:
        """Start an episode; the option `task_id` chooses the task."""
        task_id = options.get("task_id") or random.Random(seed).choice(self._scorer.task_ids)
        task = self._scorer.task(task_id)
        self._task_id = task.id
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return Question(task_id=task.id, prompt=[dict(message) for message in task.prompt])

    def step(self, action: Answer, timeout_s: float | None = None, **options: Any) -> Question:
        """Grade the answer; raises RewardError before `reset`, InfrastructureError when we fail to grade."""
        if self._task_id is None:
            raise RewardError("The episode has not begun or is over; call reset first.")
        task_id, self._task_id = self._task_id, None
        vector = self._scorer.score(task_id, action.completion)
        self._state.step_count += 1
        if vector.total is None:
            raise InfrastructureError(f"The answer to {task_id} could not be graded.")
        return Question(task_id=task_id, components=dict(vector.components), reward=vector.total, done=True)

    @property
    def state(self) -> State:
        """The episode's id and number of steps."""
        return self._state


def application(scorer: Scorer, *, sessions: int = 8) -> Any:
    """A FastAPI application for uvicorn; all sessions share the scorer and so its grader."""
    return create_app(
        lambda: OutpaceEnvironment(scorer), Answer, Question, env_name="outpace", max_concurrent_envs=sessions
    )
