"""What a report says in words about a run or a program, the same in Markdown and in HTML. Pure."""

from collections.abc import Mapping
from dataclasses import asdict

from outpace.evaluate import GradedSample
from outpace.report.numbers import show_bytes, show_duration
from outpace.report.runs import RunData


def describe(run: RunData) -> str:
    """What kind of run it is, in a few words: `grpo · starter · 60 of 60 steps`."""
    parts = [str(run.recipe[key]) for key in ("method", "model") if run.recipe.get(key)]
    if run.last_step:
        planned = run.recipe.get("max_steps")
        parts.append(f"{run.last_step} of {planned} steps" if planned else f"{run.last_step} steps")
    return " · ".join(parts)


def program_facts(sample: GradedSample) -> list[str]:
    """What is known about a program in a few words each."""
    facts = []
    if sample.reason:
        facts.append(sample.reason)
    if sample.speedup is not None:
        low, high = sample.speedup_low, sample.speedup_high
        interval = f" ({low:.2f}–{high:.2f})" if low is not None and high is not None else ""
        facts.append(f"{sample.speedup:.2f}x the reference{interval}")
    if sample.untrusted_timing:
        facts.append("timing not trusted")
    if sample.tests_total:
        facts.append(f"{sample.tests_passed} of {sample.tests_total} tests")
    if sample.tokens is not None:
        facts.append(f"{sample.tokens} tokens" + ("" if sample.finished else ", cut off"))
    return facts


def isolation_sentences(run: RunData) -> list[str]:
    """The isolation that candidates ran under, and what was missing; by the evaluation, else by the run's record."""
    recorded = run.provenance.get("isolation")
    if run.latest is not None and run.latest.isolation is not None:
        recorded = asdict(run.latest.isolation)
    if not isinstance(recorded, Mapping):
        return []
    layers, missing = recorded.get("layers") or (), recorded.get("missing") or {}
    sentences = [f"Isolation in force: {recorded.get('level')} ({', '.join(map(str, layers)) or 'no layers'})."]
    sentences += [f"Without {layer}: {why}." for layer, why in dict(missing).items()]
    return [*sentences, f"Clock: {recorded.get('clock')}."]


def costs(run: RunData) -> dict[str, str]:
    """Time and memory of each evaluation, in words."""
    found = {}
    for name, evaluation in run.evaluations.items():
        cost = evaluation.cost
        text = f"{show_duration(cost.sampling_s)} sampling, {show_duration(cost.grading_s)} grading, "
        text += f"peak memory {show_bytes(cost.peak_rss_bytes)}"
        if cost.peak_cuda_bytes:
            text += f", on the GPU {show_bytes(cost.peak_cuda_bytes)}"
        found[f"evaluation {name}"] = text
    return found
