"""Does a layer work here? Each is tried in a throw-away child: apply it, try the forbidden act, see it refused.

A kernel version says little (containers and their own seccomp profiles take layers away), a refusal says all.
"""

import errno
import os
from collections.abc import Callable

from . import kernel, landlock, namespaces, privileges, rlimits, seccomp

SIGSYS = 31
REFUSED, GRANTED, NOT_APPLIED = 0, 1, 2
_REFUSALS = (errno.EPERM, errno.EACCES, errno.EMFILE, errno.EAGAIN, errno.EINVAL, errno.ENOENT)


def namespaces_work() -> str | None:
    """None when a process in new namespaces sees no host file, else what is missing."""

    def hide() -> None:
        namespaces.enter()
        namespaces.hide_files()

    return _try(hide, lambda: os.open("/proc", os.O_PATH), "host files were still there")


def landlock_works() -> str | None:
    """None when opening a file is refused under Landlock, else what is missing."""
    return _try(landlock.restrict_once, lambda: os.open("/", os.O_RDONLY), "opening a file was not refused")


def seccomp_works() -> str | None:
    """None when making a process is refused under the filter, else what is missing."""
    return _try(_both_filters, os.fork, "making a process was not refused")


def rlimits_work() -> str | None:
    """None when an allocation above the limit is refused, else what is missing."""

    def allocate() -> None:
        try:
            bytearray(2**30)
        except MemoryError:
            raise PermissionError(errno.EPERM, "refused") from None

    return _try(lambda: rlimits.bound(2**28, 10), allocate, "allocating above the limit was not refused")


def privileges_work() -> str | None:
    """None when becoming root is refused, else what is missing."""
    return _try(privileges.seal, lambda: os.setuid(0), "becoming root was not refused")


def _both_filters() -> None:
    seccomp.Filter(seccomp.program()).enforce()
    seccomp.Filter(seccomp.closing_program()).enforce()


def _try(apply: Callable[[], object], act: Callable[[], object], granted: str) -> str | None:
    read_end, write_end = os.pipe()
    pid = kernel.fork()
    if pid == 0:
        _attempt(apply, act, write_end)
    os.close(write_end)
    why = os.read(read_end, 4096).decode(errors="replace")
    os.close(read_end)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == SIGSYS:
        return None
    code = os.waitstatus_to_exitcode(status)
    if code == REFUSED:
        return None
    return granted if code == GRANTED else why or f"the probe ended with status {status}"


def _attempt(apply: Callable[[], object], act: Callable[[], object], report: int) -> None:
    """In the throw-away child: never returns."""
    code = NOT_APPLIED
    try:
        apply()
        code = GRANTED
        act()
    except OSError as error:
        if code == NOT_APPLIED:
            os.write(report, f"the kernel does not grant it ({error.strerror})".encode())
        elif error.errno in _REFUSALS:
            code = REFUSED
    finally:
        os._exit(code)
