"""What a run folder holds, as far as it got: whatever is missing or torn is named, never an error."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from outpace.errors import OutpaceError, RunFolderError
from outpace.evaluate import Comparison, Evaluation, compare, names, read
from outpace.records import read_json, read_jsonl

_PARTS = ("recipe.yaml", "provenance.json", "metrics.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunData:
    """One run, read."""

    name: str
    recipe: Mapping[str, Any]
    provenance: Mapping[str, Any]
    metrics: tuple[Mapping[str, Any], ...]
    evaluations: Mapping[str, Evaluation]
    comparison: Comparison | None
    warnings: tuple[str, ...]
    """What went wrong or looked wrong while it ran, each once, with its first step."""
    missing: tuple[str, ...]
    """What a whole run would have and this one has not, in sentences."""

    @property
    def last_step(self) -> int:
        """The last step that was logged; 0 before the first."""
        return max((record["step"] for record in self.metrics if isinstance(record.get("step"), int)), default=0)

    @property
    def is_over(self) -> bool:
        """Whether it did all that its recipe asks for: the steps, and the evaluation after them."""
        if "after" in self.evaluations:
            return True
        planned = self.recipe.get("max_steps")
        return self.recipe.get("eval_samples") == 0 and isinstance(planned, int) and self.last_step >= planned

    @property
    def latest(self) -> Evaluation | None:
        """The evaluation after training, else whatever there is."""
        return self.evaluations.get("after") or next(reversed(list(self.evaluations.values())), None)


def read_run(path: Path | str) -> RunData:
    """Read a run folder; raises RunFolderError only when there is none at `path`."""
    path = Path(path)
    if not path.is_dir():
        raise RunFolderError(f"there is no run folder {path}: give one, such as runs/starter")
    if not any((path / part).exists() for part in _PARTS) and not names(path):
        raise RunFolderError(f"{path} is not a run folder (it has no recipe.yaml): give one, such as runs/starter")
    missing: list[str] = []
    recipe = _read_recipe(path / "recipe.yaml", missing)
    provenance = _read_provenance(path / "provenance.json", missing)
    metrics = tuple(_read_metrics(path / "metrics.jsonl", missing))
    evaluations = _read_evaluations(path, recipe, missing)
    comparison = None
    if "before" in evaluations and "after" in evaluations:
        try:
            comparison = compare(evaluations["before"], evaluations["after"])
        except OutpaceError as error:
            missing.append(f"No comparison: {error}.")
    return RunData(
        name=path.resolve().name,
        recipe=recipe,
        provenance=provenance,
        metrics=metrics,
        evaluations=evaluations,
        comparison=comparison,
        warnings=_warnings(metrics),
        missing=tuple(missing),
    )


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings as dotted keys and text: `machine.cores: 2`; a list of mappings is numbered from 1."""
    found: dict[str, str] = {}
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= flat(value, f"{name}.") if value else {name: "–"}
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            found |= flat({str(number): item for number, item in enumerate(value, 1)}, f"{name}.")
        elif isinstance(value, list):
            found[name] = ", ".join(map(str, value)) or "–"
        else:
            found[name] = "–" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _read_recipe(path: Path, missing: list[str]) -> Mapping[str, Any]:
    try:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        missing.append("The recipe (recipe.yaml) is not there.")
        return {}
    except (OSError, ValueError, yaml.YAMLError):
        missing.append("The recipe (recipe.yaml) cannot be read.")
        return {}
    return recipe if isinstance(recipe, dict) else {}


def _read_provenance(path: Path, missing: list[str]) -> Mapping[str, Any]:
    if not path.exists():
        missing.append("Versions and machine (provenance.json) were not recorded.")
        return {}
    try:
        provenance = read_json(path)
    except RunFolderError:
        missing.append("Versions and machine (provenance.json) cannot be read.")
        return {}
    return provenance if isinstance(provenance, dict) else {}


def _read_metrics(path: Path, missing: list[str]) -> list[dict[str, Any]]:
    if not path.exists():
        missing.append("No training step was logged (metrics.jsonl is not there).")
        return []
    lines = [line for line in path.read_bytes().split(b"\n") if line.strip()]
    records = read_jsonl(path)
    if len(records) < len(lines):
        torn = len(lines) - len(records)
        missing.append(f"{torn} line{'s' if torn > 1 else ''} of metrics.jsonl cannot be read: writing was cut short.")
    return records


def _read_evaluations(path: Path, recipe: Mapping[str, Any], missing: list[str]) -> dict[str, Evaluation]:
    found = {}
    for name in names(path):
        try:
            found[name] = read(path / f"evaluation-{name}.json")
        except RunFolderError:
            missing.append(f"The evaluation {name} cannot be read.")
    if recipe.get("eval_samples") == 0:
        missing.append("The recipe leaves evaluations out (eval_samples: 0).")
        return found
    for name in ("before", "after"):
        if name not in names(path):
            missing.append(f"There is no evaluation {name} training (evaluation-{name}.json).")
    return found


def _warnings(metrics: tuple[Mapping[str, Any], ...]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for record in metrics:
        texts = record.get("warnings") or record.get("warning") or []
        for text in [texts] if isinstance(texts, str) else texts if isinstance(texts, list) else []:
            step = record.get("step")
            found.setdefault(str(text), f"step {step}: {text}" if step is not None else str(text))
    return tuple(found.values())
