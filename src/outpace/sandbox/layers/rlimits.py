"""Kernel limits on one process: memory, CPU seconds, files, processes, core dumps.

Stops: eating the machine's memory, running on after its parent's death, core files. Does not stop: use below the
limits; NPROC counts per user and does nothing against root, so it is only a second copy of seccomp's ban.
"""

import resource


def bound(memory_bytes: int, cpu_s: int) -> None:
    """Hard limits on a child: its memory and CPU time; no new process, thread or descriptor."""
    _set(resource.RLIMIT_AS, memory_bytes)
    _set(resource.RLIMIT_CPU, cpu_s)
    _set(resource.RLIMIT_NPROC, 0)
    _set(resource.RLIMIT_NOFILE, 0)


def bound_forever() -> None:
    """The limits that do not depend on the candidate: set once in the zygote, inherited by its children."""
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_FSIZE, 0)
    _set(resource.RLIMIT_MEMLOCK, 0)
    _set(resource.RLIMIT_MSGQUEUE, 0)


def _set(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
