"""The preset `article`: the numbers of the article this project started from, kept for comparison.

Their faults are known, and the defaults in `executed` avoid them:

- -20 for a cheat is five times anything an honest program can gain or lose, so one cheat in a group makes the others
  look alike; and an answer without code is punished just as hard.
- accuracy has no part marks, so a program that fails one test in ten looks like one that fails all.
- the text's speed formula `sgn(t_ref - t_gen) * t_ref / t_gen` is not monotone: 1.1 times slower earns -0.91, ten
  times slower -0.1; and it jumps from -1 to +1 at equal speed, where there is only noise.
- the code's formula `(t_ref - t_gen) / t_ref * 10` is another one; it pays 9.0 for ten times faster and can never
  reach its clip of +10.
- both read one measured ratio, not an interval, so luck pays.
- the source measured speed whether or not the answer was right. That is not repeated here: `grade` times only correct
  programs, so a wrong one counts as a failure (-5).
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from outpace.reward.base import PerSample, Value, passes
from outpace.schema import Outcome, Sample


@dataclass(frozen=True, kw_only=True)
class ArticleSecurity(PerSample):
    """+1.0 for code that imports nothing but the standard library, -20.0 otherwise, also without code that parses.

    Which imports count is the static check's business: grade with its preset `article` for the article's rule.
    """

    name: ClassVar[str] = "article_security"

    def score(self, sample: Sample) -> Value:
        """+1.0 or -20.0."""
        return 1.0 if passes(sample, "security") else -20.0


@dataclass(frozen=True, kw_only=True)
class ArticleAccuracy(PerSample):
    """+4.0 when the program runs and every test agrees, else -4.0."""

    name: ClassVar[str] = "article_accuracy"

    def score(self, sample: Sample) -> Value:
        """+4.0 or -4.0."""
        return 4.0 if passes(sample, "accuracy") else -4.0


@dataclass(frozen=True, kw_only=True)
class ArticleSpeed(PerSample):
    """The article's speed reward, by the formula of its code (default) or of its text, clipped to +-10.

    Failure to run or to give the right answer -5.0, no code 0.0.
    """

    name: ClassVar[str] = "article_speed"
    formula: Literal["code", "text"] = "code"

    def score(self, sample: Sample) -> Value:
        """Between -10.0 and +10.0."""
        verdict = sample.verdict
        if verdict is None:
            return None
        if verdict.outcome is Outcome.NO_CODE:
            return 0.0
        if verdict.timing is None or not verdict.timing.ratio > 0:
            return -5.0
        return article_speed(verdict.timing.ratio, self.formula)


def article_speed(ratio: float, formula: Literal["code", "text"] = "code") -> float:
    """The article's speed reward for `ratio` = t_ref / t_gen > 0, between -10.0 and +10.0."""
    if formula == "code":
        points = (1.0 - 1.0 / ratio) * 10.0
    else:
        points = 0.0 if ratio == 1.0 else ratio if ratio > 1.0 else -ratio
    return min(max(points, -10.0), 10.0)
