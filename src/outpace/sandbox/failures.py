"""What each way to fail means: replies that say so, and wait statuses. All of it is the candidate's doing."""

import os
import signal
from typing import Any

from outpace.sandbox import wire
from outpace.schema import Failure, Outcome


def from_reply(kind: int, claim: Any) -> Failure:
    """The failure that a well-formed reply of our own child code stands for; raises BadFrame for other claims."""
    if kind == wire.EXCEPTION:
        return _exception(claim)
    detail = claim if isinstance(claim, str) else ""
    outcome, reason = {
        wire.EXIT: (Outcome.CRASHED, "exit"),
        wire.MEMORY: (Outcome.RESOURCE, "memory_limit"),
        wire.WRONG_TYPE: (Outcome.WRONG, "output_type"),
        wire.TOO_LARGE: (Outcome.RESOURCE, "reply_size"),
        wire.NO_ENTRY: (Outcome.CRASHED, "no_entry_point"),
        wire.NO_PARSE: (Outcome.SYNTAX_ERROR, "syntax_error"),
    }.get(kind, (None, ""))
    if outcome is None:
        raise wire.BadFrame(f"reply of unknown kind {kind}")
    return Failure(outcome=outcome, reason=reason, detail=detail)


def from_status(status: int) -> Failure | None:
    """The failure that a wait status stands for; None for SIGKILL, which is never a candidate's own act."""
    if os.WIFEXITED(status):
        return Failure(outcome=Outcome.CRASHED, reason="exit")
    number = os.WTERMSIG(status)
    if number == signal.SIGKILL:
        return None
    if number == signal.SIGSYS:
        return Failure(outcome=Outcome.FORBIDDEN, reason="syscall")
    if number == signal.SIGXCPU:
        return Failure(outcome=Outcome.TIMEOUT, reason="cpu_limit")
    if number == signal.SIGXFSZ:
        return Failure(outcome=Outcome.RESOURCE, reason="file_limit")
    return Failure(outcome=Outcome.CRASHED, reason=f"signal:{signal.Signals(number).name}")


def _exception(claim: Any) -> Failure:
    match claim:
        case (str(name), str(message), int() | None as line, int(number)) if name.isidentifier():
            place = f" (line {line})" if line is not None else ""
            if name == "PermissionError" and number:
                return Failure(outcome=Outcome.FORBIDDEN, reason="syscall", detail=f"{message}{place}")
            return Failure(outcome=Outcome.CRASHED, reason=f"exception:{name}", detail=f"{name}: {message}{place}")
    raise wire.BadFrame("an exception reply of another shape")
