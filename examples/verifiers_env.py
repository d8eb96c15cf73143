"""outpace's tasks as a taskset of verifiers, with this file's name as its id.

    pip install verifiers
    PYTHONPATH=examples vf-eval verifiers-env -m MODEL --client.base-url http://127.0.0.1:8000/v1 \\
        --env.agent.harness.id null --env.taskset.tasks builtin:heldout -n 10 -r 4 --no-push

The rewards are a recipe's, under `--env.taskset.task.outpace_rewards`.
"""

from outpace.adapters.verifiers import OutpaceTaskset

__all__ = ["OutpaceTaskset"]
