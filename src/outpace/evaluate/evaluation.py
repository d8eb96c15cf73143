"""The result of an evaluation: samples, measures and cost, and its way to JSON and back."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from outpace.errors import RunFolderError
from outpace.evaluate.measures import Measure, Measures, measure_all
from outpace.evaluate.samples import GradedSample
from outpace.evaluate.settings import EvalSettings
from outpace.schema import Isolation

FORMAT = 1
"""Version of the JSON form; a reader refuses a newer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What the evaluation itself took; one number each, without interval."""

    sampling_s: float
    grading_s: float
    """Time that grading was waited for."""
    peak_rss_bytes: int
    """Of this process since its start; scoring processes are not in it."""
    peak_cuda_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What one model did on a list of tasks."""

    label: str
    """What was evaluated, for a reader: `before`, a model's name."""
    settings: EvalSettings
    samples: tuple[GradedSample, ...]
    overall: Measures
    by_split: Mapping[str, Measures]
    by_task: Mapping[str, Measures]
    cost: Cost
    isolation: Isolation | None = None

    @property
    def infra_failures(self) -> int:
        """Samples that we failed to grade; they count for no measure."""
        return sum(not sample.is_graded for sample in self.samples)

    @property
    def untrusted_timings(self) -> int:
        """Correct samples whose timing cannot be trusted; they count for no measure of speed."""
        return sum(sample.untrusted_timing for sample in self.samples)

    @property
    def outcomes(self) -> dict[str, int]:
        """How many samples had each outcome, most frequent first; `not_graded` for our own failures."""
        counts = Counter(sample.outcome.value if sample.outcome else "not_graded" for sample in self.samples)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def summary(self) -> dict[str, Any]:
        """Everything but the samples, as plain data: what `outpace eval --json` prints."""
        return {
            "format": FORMAT,
            "label": self.label,
            "measures": _measures_to_dict(self.overall),
            "by_split": {split: _measures_to_dict(measures) for split, measures in self.by_split.items()},
            "by_task": {task: _measures_to_dict(measures) for task, measures in self.by_task.items()},
            "outcomes": self.outcomes,
            "infra_failures": self.infra_failures,
            "untrusted_timings": self.untrusted_timings,
            "settings": asdict(self.settings),
            "cost": asdict(self.cost),
            "isolation": asdict(self.isolation) if self.isolation else None,
        }

    def to_json(self) -> str:
        """Everything, as one JSON object; `from_json` gives an equal evaluation back."""
        return json.dumps({**self.summary(), "samples": [sample.to_dict() for sample in self.samples]})

    @classmethod
    def from_json(cls, text: str) -> "Evaluation":
        """Read `to_json`'s text; raises RunFolderError when it is something else."""
        try:
            data = json.loads(text)
            return cls.from_parts(data, [GradedSample.from_dict(sample) for sample in data["samples"]])
        except (ValueError, KeyError, TypeError) as error:
            raise RunFolderError(
                f"this is not a stored evaluation ({error}); write it anew with `outpace eval`"
            ) from error

    @classmethod
    def from_parts(cls, summary: Mapping[str, Any], samples: Sequence[GradedSample]) -> "Evaluation":
        """Join a `summary` and its samples; raises KeyError, TypeError or ValueError when a part is missing."""
        if summary["format"] > FORMAT:
            raise ValueError(f"format {summary['format']} is newer than this version reads")
        settings = {**summary["settings"], "k_values": tuple(summary["settings"]["k_values"])}
        isolation = summary["isolation"]
        return cls(
            label=summary["label"],
            settings=EvalSettings(**settings),
            samples=tuple(samples),
            overall=_measures_from_dict(summary["measures"]),
            by_split={split: _measures_from_dict(measures) for split, measures in summary["by_split"].items()},
            by_task={task: _measures_from_dict(measures) for task, measures in summary["by_task"].items()},
            cost=Cost(**summary["cost"]),
            isolation=Isolation(**{**isolation, "layers": tuple(isolation["layers"])}) if isolation else None,
        )


def summarise(
    label: str,
    samples: Sequence[GradedSample],
    settings: EvalSettings,
    cost: Cost,
    isolation: Isolation | None = None,
) -> Evaluation:
    """Measure samples over all tasks, for each split and for each task."""
    by_split: dict[str, list[GradedSample]] = defaultdict(list)
    by_task: dict[str, list[GradedSample]] = defaultdict(list)
    for sample in samples:
        by_split[sample.split].append(sample)
        by_task[sample.task_id].append(sample)
    splits = sorted(by_split, key=lambda split: (split != "train", split))
    return Evaluation(
        label=label,
        settings=settings,
        samples=tuple(samples),
        overall=measure_all(samples, settings),
        by_split={split: measure_all(by_split[split], settings) for split in splits},
        by_task={task: measure_all(group, settings) for task, group in by_task.items()},
        cost=cost,
        isolation=isolation,
    )


def _measures_to_dict(measures: Measures) -> dict[str, Any]:
    return {name: measure.to_dict() for name, measure in measures.items()}


def _measures_from_dict(data: Mapping[str, Any]) -> dict[str, Measure]:
    return {name: Measure.from_dict(measure) for name, measure in data.items()}
