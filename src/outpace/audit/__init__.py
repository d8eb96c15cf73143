"""`outpace audit`: do attacks pay, are honest programs punished?

Runs a case file, or our own corpus of attacks, against our reward or against any TRL-style reward callable. It judges
rewards, not models, and it is no proof: an attack that nobody wrote down is not tried.
"""

from outpace.audit.cases import AuditCase, corpus_cases, load_cases
from outpace.audit.report import AuditReport, CaseResult
from outpace.audit.run import load_reward, run_audit, run_cases

__all__ = [
    "AuditCase",
    "AuditReport",
    "CaseResult",
    "corpus_cases",
    "load_cases",
    "load_reward",
    "run_audit",
    "run_cases",
]
