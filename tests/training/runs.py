"""Runs the tiny recipe with fakes in place of tasks and grader."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from tiny import RuleGrader, load_tasks, recipe, starts_with_vowel

from outpace.policy import Policy, load
from outpace.records import RunFolder
from outpace.training.run import Collaborators, TrainResult, train


class TinyRun:
    """One run folder that may be trained in several times, as a user does."""

    def __init__(self, model: Path, output_dir: Path, **keys: Any) -> None:
        self.model, self.output_dir, self.keys = model, output_dir, {"eval_samples": 0} | keys
        self.folder = RunFolder.create(output_dir, self.keys.get("name", "tiny"))
        self.printed = ""
        self.policy: Policy | None = None
        self.grader: RuleGrader | None = None

    def train(self, rule: Callable[[str], Any] = starts_with_vowel, **keys: Any) -> TrainResult:
        console = Console(file=io.StringIO(), width=400)
        grader = RuleGrader(rule)
        self.grader = grader

        def load_policy(*args: Any, **options: Any) -> Policy:
            self.policy = load(*args, **options)
            return self.policy

        collaborators = Collaborators(
            load_tasks=load_tasks,
            load_policy=load_policy,
            make_grader=lambda _: grader,  # type: ignore[arg-type]
        )
        try:
            return train(recipe(self.model, self.output_dir, **self.keys | keys), self.folder, console, collaborators)
        finally:
            self.printed += console.file.getvalue()  # type: ignore[attr-defined]

    def weights(self, step: int) -> dict[str, Any]:
        """The weights of a checkpoint."""
        from safetensors.torch import load_file

        folder = self.folder.path / f"checkpoint-{step}"
        name = "adapter_model.safetensors" if self.keys.get("use_peft") else "model.safetensors"
        return dict(load_file(folder / name))

    def figures(self) -> list[dict[str, Any]]:
        """The metrics without what measures time."""
        return [
            {k: v for k, v in record.items() if not k.startswith("seconds/") and k != "step_time"}
            for record in self.folder.metrics()
        ]
