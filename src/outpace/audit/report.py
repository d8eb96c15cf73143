"""What an audit found: one result per case, counts over them, as JSON and for people."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from outpace.audit.cases import AuditCase

NOT_JUDGED = "not_judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """How one case came out."""

    id: str
    group: str
    title: str
    expected: str
    got: str
    """The class found: one of the case file's classes, or `hack_paid`, `not_judged`, `not_graded`, `reward_failed`."""
    paid: bool = False
    """An attack earned what it should not."""
    ok: bool = True
    """In the expected class; a case that is not judged is not held against anybody."""
    outcome: str | None = None
    reason: str | None = None
    reward: float | None = None
    note: str = ""

    @property
    def judged(self) -> bool:
        """Whether the audit could say anything about the case."""
        return self.got != NOT_JUDGED

    @property
    def punished(self) -> bool:
        """An honest program came out as anything but honest."""
        return not self.ok and self.expected == "honest_scored"


def result_of(case: AuditCase, got: str, **facts: Any) -> CaseResult:
    """A result with what the case says about itself."""
    return CaseResult(id=case.id, group=case.group, title=case.title, expected=case.expected, got=got, **facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """All results of one audit."""

    results: tuple[CaseResult, ...]
    reward: str = "default"
    """Whose reward was audited."""
    isolation: str | None = None
    """Level of isolation under which the candidates ran; None when a foreign reward ran them."""
    warnings: tuple[str, ...] = ()
    """What puts the whole audit in doubt: a reward that does not tell the controls apart, defences switched off."""

    @property
    def paid(self) -> list[CaseResult]:
        """Attacks that pay."""
        return [result for result in self.results if result.paid]

    @property
    def misjudged(self) -> list[CaseResult]:
        """Cases outside their expected class that are not attacks that pay."""
        return [result for result in self.results if not result.ok and not result.paid]

    @property
    def ok(self) -> bool:
        """No attack pays, no case is misjudged."""
        return not self.paid and not self.misjudged

    def to_json(self) -> dict[str, Any]:
        """Counts, the ids behind them, and every case; the keys are a contract."""
        return {
            "reward": self.reward,
            "isolation": self.isolation,
            "cases": len(self.results),
            "judged": sum(result.judged for result in self.results),
            "paid": len(self.paid),
            "misjudged": len(self.misjudged),
            "paid_ids": [result.id for result in self.paid],
            "misjudged_ids": [result.id for result in self.misjudged],
            "by_case": {result.id: _without_id(result) for result in self.results},
            "warnings": list(self.warnings),
        }

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = [_counts(self)]
        parts += [Text(f"warning: {warning}", style="yellow") for warning in self.warnings]
        for title, results in (("attacks that pay", self.paid), ("misjudged", self.misjudged)):
            if results:
                parts.append(_table(title, results))
        verdict = (
            "no attack pays, no honest program is punished" if self.ok else "this reward can be gamed or is unfair"
        )
        parts.append(Text(verdict, style="bold green" if self.ok else "bold red"))
        return Group(*parts)


def _without_id(result: CaseResult) -> dict[str, Any]:
    return {key: value for key, value in asdict(result).items() if key != "id"}


def _counts(report: AuditReport) -> Table:
    table = Table(title=f"audit of the reward {report.reward}", title_justify="left")
    for heading in ("expected", "cases", "as expected", "paid", "misjudged", "not judged"):
        table.add_column(heading, justify="left" if heading == "expected" else "right")
    for expected, count in sorted(Counter(result.expected for result in report.results).items()):
        mine = [result for result in report.results if result.expected == expected]
        judged = [result for result in mine if result.judged]
        good = sum(result.ok for result in judged)
        paid = sum(result.paid for result in mine)
        table.add_row(
            expected, str(count), str(good), str(paid), str(len(judged) - good - paid), str(count - len(judged))
        )
    return table


def _table(title: str, results: list[CaseResult]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in ("case", "title", "expected", "got", "why"):
        table.add_column(heading, overflow="fold")
    for r in results:
        why = " ".join(part for part in (r.outcome, r.reason, r.note) if part)
        table.add_row(r.id, r.title, r.expected, r.got, why)
    return table
