"""The audit from its inputs to its report."""

from collections.abc import Sequence
from pathlib import Path

from outpace.audit.cases import AuditCase, corpus_cases, load_cases
from outpace.audit.foreign import audit_foreign
from outpace.audit.ours import audit_ours, completion_of
from outpace.audit.report import AuditReport
from outpace.audit.reward_call import RewardFunction, load_reward
from outpace.audit.reward_process import RewardProcess
from outpace.grade import Grader, GradeSettings
from outpace.reward import RewardSet, build
from outpace.sandbox import SandboxSettings

__all__ = ["load_reward", "run_audit", "run_cases"]

Audited = RewardSet | RewardFunction | str | None
"""Ours (a set, a preset's name, None for the default) or a foreign one (a callable, `package.module:function`)."""


def run_audit(*, cases: Path | None = None, reward: Audited = None, allow_weak_isolation: bool = False) -> AuditReport:
    """Audit with a grader of its own, which is closed again.

    Args:
        cases: a case file; None: our own corpus.
        reward: whose reward; see `Audited`.
        allow_weak_isolation: run also where the kernel cannot isolate properly.
    """
    settings = GradeSettings(sandbox=SandboxSettings(allow_weak_isolation=allow_weak_isolation))
    chosen = corpus_cases() if cases is None else load_cases(cases)
    with Grader(settings=settings) as grader:
        return run_cases(chosen, grader, reward)


def run_cases(cases: Path | Sequence[AuditCase], grader: Grader, reward: Audited = None) -> AuditReport:
    """Judge cases, or those of a file, with a grader that the caller made (its settings may switch defences off).

    Raises ConfigError for a bad case file and RewardError for a reward that cannot be loaded.
    """
    chosen = load_cases(cases) if isinstance(cases, Path) else list(cases)
    if reward is None or isinstance(reward, RewardSet) or (isinstance(reward, str) and ":" not in reward):
        rewards = reward if isinstance(reward, RewardSet) else build(reward or "default")
        return AuditReport(
            results=tuple(audit_ours(chosen, grader, rewards)),
            reward=reward if isinstance(reward, str) else "+".join(rewards.names),
            isolation=grader.isolation().level,
            warnings=tuple(f"the defence {name} is switched off" for name in grader.settings.switched_off()),
        )
    with RewardProcess(reward) as process:
        results, warnings = audit_foreign(chosen, process, lambda case: completion_of(case, grader))
    name = reward if isinstance(reward, str) else getattr(reward, "__qualname__", repr(reward))
    return AuditReport(results=tuple(results), reward=name, warnings=tuple(warnings))
