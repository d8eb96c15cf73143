"""outpace's tasks and rewards as a taskset of verifiers (version 1, `import verifiers.v1`).

`vf-eval` and prime-rl load a taskset by the name of an installed module that exports it; see
`examples/verifiers_env.py`. verifiers scores each rollout alone, so group rewards see groups of one. Importing this
file imports verifiers.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import verifiers.v1 as vf  # type: ignore[import-not-found,unused-ignore]
from pydantic import Field

from outpace import tasks as catalogue
from outpace.adapters.scoring import Scorer
from outpace.errors import InfrastructureError
from outpace.grade import Grader

__all__ = ["OutpaceTaskset"]


class OutpaceTaskConfig(vf.TaskConfig):  # type: ignore[misc,unused-ignore]
    """What a completion is worth."""

    outpace_rewards: dict[str, float | dict[str, Any]] = Field(default={"default": 1.0})
    """A recipe's `rewards`."""


class OutpaceData(vf.TaskData):  # type: ignore[misc,unused-ignore]
    """One task, by the id and the spec it was loaded with; no expected value is in it."""

    task_id: str
    tasks: str


class OutpaceTask(vf.Task[OutpaceData, vf.State, OutpaceTaskConfig]):  # type: ignore[misc,unused-ignore]
    """Scores the last reply of a rollout."""

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator,unused-ignore]
    async def outpace(self, trace: Any) -> Mapping[str, float]:
        """Weight times value of each component; raises when the reply could not be graded."""
        scorer = _scorer(self.data.tasks, json.dumps(self.config.outpace_rewards))
        vector = await asyncio.to_thread(scorer.score, self.data.task_id, trace.last_reply)
        if vector.total is None:
            raise InfrastructureError(f"A reply to {self.data.task_id} could not be graded.")
        weights = scorer.rewards.weights()
        return {name: weights[name] * value for name, value in vector.components.items() if value is not None}


class OutpaceConfig(vf.TasksetConfig):  # type: ignore[misc,unused-ignore]
    """Which tasks."""

    tasks: str = "builtin:train"
    task: OutpaceTaskConfig = OutpaceTaskConfig()


class OutpaceTaskset(vf.Taskset[OutpaceTask, OutpaceConfig]):  # type: ignore[misc,unused-ignore]
    """One verifiers task per outpace task."""

    def load(self) -> Iterator[OutpaceTask]:
        """Yield the tasks that `tasks` names."""
        for task in catalogue.load(self.config.tasks):
            prompt = [vf.UserMessage(content=m["content"]) for m in task.prompt if m["role"] == "user"]
            system = "\n\n".join(m["content"] for m in task.prompt if m["role"] == "system")
            names = {"id": task.id, "name": task.id, "task_id": task.id, "tasks": self.config.tasks}
            yield OutpaceTask(OutpaceData(prompt=prompt, system_prompt=system or None, **names), self.config.task)


def close() -> None:
    """End the scoring processes, which otherwise end with this process."""
    if _grader.cache_info().currsize:
        _grader().close()


@cache
def _grader() -> Grader:
    """One grader for the process: verifiers has no hook for the end of an environment."""
    return Grader()


@cache
def _scorer(tasks: str, rewards: str) -> Scorer:
    return Scorer(_grader(), catalogue.load(tasks), json.loads(rewards))
