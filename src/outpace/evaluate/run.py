"""Model and tasks in, evaluation out: sample a batch, grade it, go on.

Grading waits for sampling to end, so that no sampling disturbs the timing of candidates.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from outpace.errors import ConfigError, TaskError
from outpace.evaluate import memory
from outpace.evaluate.evaluation import Cost, Evaluation, summarise
from outpace.evaluate.samples import GradedSample, graded_sample, isolation_of
from outpace.evaluate.settings import Completion, EvalSettings, Grades, Progress, SampleCompletions
from outpace.schema import Task, Verdict


def evaluate(
    sample_completions: SampleCompletions,
    tasks: Sequence[Task],
    grader: Grades,
    settings: EvalSettings | None = None,
    progress: Progress | None = None,
    *,
    label: str = "model",
) -> Evaluation:
    """Draw samples of every task, grade them and measure.

    The sampler is called with a seed that depends on `settings.seed` and on the batch alone, so two models get the
    same seeds for the same tasks. Raises TaskError without tasks or with one twice, ConfigError when the sampler
    returns another number of completions than asked for.
    """
    settings = settings or EvalSettings()
    _refuse_bad_tasks(tasks)
    samples: list[GradedSample] = []
    verdicts: list[Verdict | None] = []
    sampling_s = grading_s = 0.0
    total = len(tasks) * settings.samples_per_task
    for number, batch in enumerate(_batches(tasks, settings)):
        started = time.monotonic()
        groups = _sample(sample_completions, batch, settings, seed=settings.seed + number)
        sampled = time.monotonic()
        graded = _grade(groups, batch, grader)
        sampling_s += sampled - started
        grading_s += time.monotonic() - sampled
        for task, group, group_verdicts in zip(batch, groups, graded, strict=True):
            pairs = zip(group, group_verdicts, strict=True)
            samples += [graded_sample(task, i, completion, verdict) for i, (completion, verdict) in enumerate(pairs)]
            verdicts += group_verdicts
        if progress:
            progress(len(samples), total)
    cost = Cost(
        sampling_s=sampling_s,
        grading_s=grading_s,
        peak_rss_bytes=memory.peak_rss_bytes(),
        peak_cuda_bytes=memory.peak_cuda_bytes(),
    )
    return summarise(label, samples, settings, cost, isolation_of(verdicts))


def stored(completions: Mapping[str, Sequence[Completion | str]]) -> SampleCompletions:
    """Replay completions by task id instead of sampling; raises TaskError for a task that has too few."""

    def replay(tasks: Sequence[Task], settings: EvalSettings, seed: int) -> list[Sequence[Completion | str]]:
        del seed
        short = [task.id for task in tasks if len(completions.get(task.id, ())) < settings.samples_per_task]
        if short:
            raise TaskError(
                f"task {short[0]} has {len(completions.get(short[0], ()))} stored completions and "
                f"{settings.samples_per_task} are asked for; lower samples_per_task or store more"
            )
        return [completions[task.id][: settings.samples_per_task] for task in tasks]

    return replay


def _refuse_bad_tasks(tasks: Sequence[Task]) -> None:
    if not tasks:
        raise TaskError("there is no task to evaluate on; name some with --tasks")
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise TaskError(f"task {task.id} is listed twice; name it once")
        seen.add(task.id)


def _batches(tasks: Sequence[Task], settings: EvalSettings) -> Iterator[Sequence[Task]]:
    size = max(1, settings.batch_size // settings.samples_per_task)
    return (tasks[start : start + size] for start in range(0, len(tasks), size))


def _sample(
    sample_completions: SampleCompletions, batch: Sequence[Task], settings: EvalSettings, seed: int
) -> list[list[Completion]]:
    groups = sample_completions(batch, settings, seed)
    sizes = [len(group) for group in groups]
    if sizes != [settings.samples_per_task] * len(batch):
        raise ConfigError(
            f"the sampler returned groups of {sizes} completions for {len(batch)} tasks; "
            f"it must return {settings.samples_per_task} for each"
        )
    return [[Completion(text=c) if isinstance(c, str) else c for c in group] for group in groups]


def _grade(groups: Sequence[Sequence[Completion]], batch: Sequence[Task], grader: Grades) -> list[list[Verdict | None]]:
    in_flight = []
    for task, group in zip(batch, groups, strict=True):
        flight = grader.open_group(task, len(group))
        for index, completion in enumerate(group):
            flight.add(index, completion.text, finished=completion.finished, answer=completion.answer)
        in_flight.append(flight)
    return [flight.result() for flight in in_flight]
