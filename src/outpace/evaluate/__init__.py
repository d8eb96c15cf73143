"""Evaluation: completions of a model, graded, and what they say about it, with intervals.

What it does not do: load a model (completions come from a callable), train, or decide whether a result is good.
"""

from outpace.evaluate.catalogue import Unit, pass_at_k
from outpace.evaluate.compare import Comparison, Difference, compare
from outpace.evaluate.evaluation import Cost, Evaluation, summarise
from outpace.evaluate.files import names, read, save
from outpace.evaluate.measures import Measure
from outpace.evaluate.policies import from_policy
from outpace.evaluate.run import evaluate, stored
from outpace.evaluate.samples import GradedSample
from outpace.evaluate.settings import Completion, EvalSettings, SampleCompletions

__all__ = [
    "Comparison",
    "Completion",
    "Cost",
    "Difference",
    "EvalSettings",
    "Evaluation",
    "GradedSample",
    "Measure",
    "SampleCompletions",
    "Unit",
    "compare",
    "evaluate",
    "from_policy",
    "names",
    "pass_at_k",
    "read",
    "save",
    "stored",
    "summarise",
]
