"""Evaluations in a run folder: `evaluation-NAME.json` (measures) and `samples/evaluation-NAME.jsonl` (samples).

Each file is replaced as a whole; the samples first, so that measures never stand without them.
"""

from pathlib import Path

from outpace.errors import RunFolderError
from outpace.evaluate.evaluation import Evaluation
from outpace.evaluate.samples import GradedSample
from outpace.records import read_json, read_jsonl, write_json, write_jsonl


def save(evaluation: Evaluation, folder: Path | str, name: str) -> Path:
    """Write an evaluation under `folder` and return the path of its measures; raises RunFolderError."""
    path = Path(folder) / f"evaluation-{name}.json"
    write_jsonl(_samples_path(path), [sample.to_dict() for sample in evaluation.samples])
    write_json(path, evaluation.summary())
    return path


def read(path: Path | str) -> Evaluation:
    """Read an evaluation by the path of its measures; raises RunFolderError when it is missing or damaged."""
    path = Path(path)
    summary = read_json(path)
    rows = read_jsonl(_samples_path(path))
    try:
        return Evaluation.from_parts(summary, [GradedSample.from_dict(row) for row in rows])
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(
            f"{path} is not a stored evaluation ({type(error).__name__}: {error}): write it anew with `outpace eval`"
        ) from error


def names(folder: Path | str) -> list[str]:
    """Names of the evaluations in a run folder, `before` and `after` first."""
    found = [path.stem.removeprefix("evaluation-") for path in Path(folder).glob("evaluation-*.json")]
    first = {"before": 0, "after": 1}
    return sorted(found, key=lambda name: (first.get(name, 2), name))


def _samples_path(path: Path) -> Path:
    return path.parent / "samples" / f"{path.stem}.jsonl"
