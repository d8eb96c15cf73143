"""Runs trimmed answers in this package's sandbox, so that `mix.py` knows which are right and how fast.

Quicker than full grading: one process per program, tight limits, a dozen fixed inputs, no timing trials (only the CPU
time of one call at timing size). Programs that only lack an import are judged with it as well (`repaired`).

usage: python distill/judge.py samples.jsonl.gz judged.jsonl [--per-task N]
"""

import argparse
import copy
import gzip
import json
import random
import time
from collections import Counter
from pathlib import Path

from repair import add_imports
from trim import trim

from outpace.extract import extract
from outpace.sandbox import ProcessSandbox, SandboxSettings
from outpace.schema import Limits, Purpose, Sandbox, Task
from outpace.static_check import check
from outpace.tasks import load

MAX_CHARS = 800
LIMITS = Limits(wall_s=1.5, cpu_s=0.5)
INPUTS = 14


class Judge:
    """Judges programs for one task on inputs drawn once."""

    def __init__(self, task: Task, sandbox: Sandbox) -> None:
        assert task.inputs is not None and task.oracle is not None  # noqa: PT018  # built-in tasks have both
        self.task, self.sandbox = task, sandbox
        drawn = list(task.inputs(random.Random(1), Purpose.CORRECTNESS))
        self.inputs = (
            drawn if len(drawn) <= INPUTS else drawn[: INPUTS // 2] + random.Random(2).sample(drawn, INPUTS // 2)
        )
        self.expected = [task.oracle(*copy.deepcopy(args)) for args in self.inputs]
        self.timed = next(iter(task.inputs(random.Random(3), Purpose.TIMING)))

    def outcome(self, text: str) -> tuple[str, float | None]:
        """Return an outcome word and, when correct, the CPU milliseconds of one call at timing size."""
        extraction = extract(text, self.task.entry_point)
        if extraction.candidate is None:
            return "no_code", None
        source = extraction.candidate.source
        report = check(source, self.task.entry_point)
        if not report.parses:
            return "syntax_error", None
        if not report.is_compliant:
            return "forbidden", None
        return self._run(source)

    def _run(self, source: str) -> tuple[str, float | None]:
        task = self.task
        instance = self.sandbox.open(source, task.entry_point, LIMITS, consume_iterator=task.returns_sequence)
        try:
            for args, expected in zip(self.inputs, self.expected, strict=True):
                result = instance.call(args)
                if result.failure is not None:
                    return str(result.failure.outcome), None
                if not task.compare(result.value, expected, args):
                    return "wrong", None
            timed = instance.call(self.timed)
            return "correct", None if timed.cpu_ns is None or timed.failure is not None else timed.cpu_ns / 1e6
        finally:
            instance.close()


def main() -> None:
    """Trim, judge each distinct answer once and write one line per distinct answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samples", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--per-task", type=int, default=10**6, help="distinct answers judged per task, at random")
    parser.add_argument("--part", default="0/1", help="judge every n-th task only: i/n")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    tasks = {task.id: task for task in load("builtin")[part::parts]}
    answers: dict[str, Counter[str]] = {task_id: Counter() for task_id in tasks}
    with gzip.open(args.samples, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            if record["task"] not in tasks:
                continue
            text = trim(record["text"], tasks[record["task"]].entry_point)
            is_whole = record["finished"] or text.endswith("```")
            if is_whole and len(text) <= MAX_CHARS:
                answers[record["task"]][text] += 1
    sandbox = ProcessSandbox(SandboxSettings())
    with args.out.open("w", encoding="utf-8") as out:
        for task_id, counted in answers.items():
            start_s, judge, outcomes = time.perf_counter(), Judge(tasks[task_id], sandbox), Counter[str]()
            texts = sorted(counted)
            random.Random(0).shuffle(texts)
            for text in texts[: args.per_task]:
                for version, origin in ((text, "drawn"), (_repaired(text), "repaired")):
                    if version is None or (origin == "repaired" and version in counted):
                        continue
                    outcome, cpu_ms = judge.outcome(version)
                    outcomes[f"{origin} {outcome}"] += counted[text]
                    record = {"task": task_id, "text": version, "origin": origin, "count": counted[text]}
                    out.write(json.dumps({**record, "outcome": outcome, "cpu_ms": cpu_ms}) + "\n")
            out.flush()
            print(f"{task_id} {time.perf_counter() - start_s:.0f} s: {dict(outcomes.most_common())}", flush=True)
    sandbox.close()


def _repaired(text: str) -> str | None:
    head, fence, rest = text.partition("```python\n")
    code, end, tail = rest.partition("\n```")
    fixed = add_imports(code) if fence and end else None
    return None if fixed is None else f"{head}{fence}{fixed}{end}{tail}"


if __name__ == "__main__":
    main()
