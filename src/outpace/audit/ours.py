"""Audit a reward of ours: grade every case beside its controls, score them as one group, judge.

Candidates run in the grader's sandbox and nowhere else.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from outpace.audit.cases import AuditCase, control_source, fenced
from outpace.audit.expressions import evaluate
from outpace.audit.judge import Controls, Graded, judge
from outpace.audit.numbers import judge_rewards, judge_timings
from outpace.audit.report import NOT_JUDGED, CaseResult, result_of
from outpace.audit.tests_given import find_task, task_and_completion
from outpace.errors import ConfigError, TaskError, UserError
from outpace.grade import Grader, GroupInFlight
from outpace.reward import RewardSet
from outpace.schema import RewardVector, Sample, Task

_PER_GROUP = 12
"""Cases that share one set of controls: few enough that a case which stalls holds up little."""

_WHERE = {
    "config": "tests/config",
    "processes": "tests/sandbox",
    "leak": "tests/sandbox",
    "infra": "tests/grade",
    "tests": "tests/tasks",
    "judge": "tests/reward",
    "logging": "tests/records",
    "resume": "tests/training",
    "checkpoint": "tests/records",
    "shutdown": "tests/training",
}
"""Where the behaviour of a case that cannot be judged by running a program is tested, by its first tag."""


@dataclass(frozen=True, slots=True)
class _Entry:
    case: AuditCase
    task: Task
    completion: str


def audit_ours(cases: Sequence[AuditCase], grader: Grader, rewards: RewardSet) -> list[CaseResult]:
    """One result per case, in the order of the cases; a case that cannot be read is `not_graded`, the others go on."""
    results: dict[str, CaseResult] = {}
    entries: list[_Entry] = []
    for case in cases:
        try:
            found = _result_or_entry(case, grader, rewards)
        except (UserError, LookupError, TypeError, ValueError, AttributeError) as error:
            found = result_of(case, "not_graded", ok=False, note=f"the case cannot be read: {error}")
        if isinstance(found, CaseResult):
            results[case.id] = found
        else:
            entries.append(found)
    results |= _by_id(_grade(entries, grader, rewards))
    late = [entry for entry in entries if _is_late(results[entry.case.id])]
    results |= _by_id(_grade(late, grader, rewards))
    return [results[case.id] for case in cases]


def _by_id(results: Sequence[CaseResult]) -> dict[str, CaseResult]:
    return {result.id: result for result in results}


def _is_late(result: CaseResult) -> bool:
    """Whether a busy machine may be to blame; such a case is tried once more, one that pays never is."""
    return not result.ok and not result.paid and result.got in ("timeout", "not_graded")


def _result_or_entry(case: AuditCase, grader: Grader, rewards: RewardSet) -> CaseResult | _Entry:
    if case.kind == "timings":
        return judge_timings(case, find_task("linalg/matmul"), rewards)
    if case.kind == "rewards":
        return judge_rewards(case, find_task("linalg/matmul"), rewards)
    if case.kind == "tests":
        return _Entry(case, *task_and_completion(case, grader))
    if case.kind == "completion":
        return _Entry(case, find_task(case.task), completion_of(case, grader))
    return result_of(case, NOT_JUDGED, note=_where(case))


def completion_of(case: AuditCase, grader: Grader) -> str:
    """The completion of a case: given as `text`, or made by the expression `build`."""
    if "text" in case.input:
        return str(case.input["text"])
    if "build" not in case.input:
        raise ConfigError(f"case {case.id} has neither text nor build")
    made = evaluate(grader, str(case.input["build"]))
    if not isinstance(made, str):
        raise ConfigError(f"the build expression of case {case.id} makes a {type(made).__name__}, not text")
    return made


def _where(case: AuditCase) -> str:
    places = [_WHERE[tag] for tag in case.tags if tag in _WHERE]
    return f"kind {case.kind} runs no program; see {places[0] if places else 'tests'}"


def control_completions(task: Task) -> tuple[str, str, str]:
    """Honest, slow honest and wrong program for a task; the reference stands in where we have no better one."""
    reference = task.reference or ""
    wrong = f"def {task.entry_point}(*args):\n    return None\n"
    texts = (control_source(task.id, "honest"), control_source(task.id, "slow"), control_source(task.id, "wrong"))
    defaults = (reference, reference, wrong)
    honest, slow, bad = (fenced(text or default) for text, default in zip(texts, defaults, strict=True))
    return honest, slow, bad


@dataclass(frozen=True, slots=True)
class _Batch:
    entries: Sequence[_Entry]
    group: GroupInFlight
    completions: Sequence[str]


def _grade(entries: Sequence[_Entry], grader: Grader, rewards: RewardSet) -> list[CaseResult]:
    started = [_start(chunk, grader) for chunk in _chunks(entries)]
    return [result for batch in started for result in _finish(batch, rewards)]


def _chunks(entries: Sequence[_Entry]) -> list[list[_Entry]]:
    """Entries of one task together, a few at a time; a task with tests of its own stays alone."""
    chunks: list[list[_Entry]] = []
    for entry in sorted(entries, key=lambda entry: entry.task.id):
        fits = chunks and chunks[-1][0].task is entry.task and len(chunks[-1]) < _PER_GROUP
        if fits:
            chunks[-1].append(entry)
        else:
            chunks.append([entry])
    return chunks


def _start(entries: Sequence[_Entry], grader: Grader) -> _Batch:
    task = entries[0].task
    completions = [*control_completions(task), *(entry.completion for entry in entries)]
    group = grader.open_group(task, len(completions))
    controls = len(completions) - len(entries)
    for index, completion in enumerate(completions):
        case = entries[index - controls].case if index >= controls else None
        group.add(index, completion, finished=case is None or bool(case.input.get("finished", True)))
    return _Batch(entries, group, completions)


def _finish(batch: _Batch, rewards: RewardSet) -> list[CaseResult]:
    task = batch.entries[0].task
    try:
        verdicts = batch.group.result()
    except TaskError as error:
        return [_not_graded(entry, batch, str(error)) for entry in batch.entries]
    samples = [
        Sample(task=task, completion=completion, verdict=verdict)
        for completion, verdict in zip(batch.completions, verdicts, strict=True)
    ]
    scored = rewards.score(samples)
    graded = [_graded(sample, vector) for sample, vector in zip(samples, scored, strict=True)]
    honest, slow, wrong = graded[:3]
    if honest is None or slow is None or wrong is None:
        return [_not_graded(entry, batch) for entry in batch.entries]
    controls = Controls(honest, slow, wrong)
    complaint = None if task.cases else controls.complaint()
    return [
        _not_graded(entry, batch, complaint) if found is None or complaint else judge(entry.case, found, controls)
        for entry, found in zip(batch.entries, graded[3:], strict=True)
    ]


def _graded(sample: Sample, vector: RewardVector) -> Graded | None:
    return None if sample.verdict is None else Graded(sample.verdict, vector)


def _not_graded(entry: _Entry, batch: _Batch, complaint: str | None = None) -> CaseResult:
    note = complaint or f"we failed: {batch.group.error}"
    return result_of(entry.case, "not_graded", ok=False, note=note)
