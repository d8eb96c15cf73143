"""Kernel limits on one process: memory, CPU seconds, files, processes, core dumps.

Stops: eating the machine's memory, running on after its parent's death, core files. Does not stop: use below the
limits; NPROC counts per user and does nothing against root, so it is only a second copy of seccomp's ban.
"""

import resource

STACK_BYTES = 64 * 2**20


def bound(memory_bytes: int, cpu_s: int) -> None:
    """Set hard limits on this process; they cannot be raised again by an ordinary user."""
    _set(resource.RLIMIT_AS, memory_bytes)
    _set(resource.RLIMIT_CPU, cpu_s)


def bound_forever() -> None:
    """The limits that do not depend on the candidate: set once in the zygote, inherited by its children."""
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_FSIZE, 0)
    _set(resource.RLIMIT_MEMLOCK, 0)
    _set(resource.RLIMIT_MSGQUEUE, 0)


def no_processes() -> None:
    """No process or thread can be added for this user; the zygote must not call it."""
    _set(resource.RLIMIT_NPROC, 0)


def _set(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
