"""Grade two answers to one problem: what is right, what is fast, what it is worth. Runs offline in a few seconds."""

from outpace import reward, tasks
from outpace.grade import Grader
from outpace.schema import Sample

task = tasks.get("sequences/prefix_sums")
answers = [
    "```python\nfrom itertools import accumulate\n\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n```",
    "```python\ndef prefix_sums(xs):\n    return xs\n```",
]

if __name__ == "__main__":
    with Grader() as grader, reward.build("default") as rewards:
        verdicts = grader.grade_group(answers, task)
        group = [Sample(task=task, completion=a, verdict=v) for a, v in zip(answers, verdicts, strict=True)]
        for sample, vector in zip(group, rewards.score(group), strict=True):
            speed = "" if sample.verdict.timing is None else f", {sample.verdict.timing.ratio:.0f} times as fast"
            print(f"{sample.verdict.outcome}{speed}: {dict(vector.components)} = {vector.total}")
