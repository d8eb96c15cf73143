"""Landlock: no file is opened, no TCP port used, no outside process signalled, by this process and its children.

Stops: opening, making, renaming, executing and truncating files; TCP bind and connect (ABI 4); abstract unix
sockets and signals to processes outside (ABI 6). Does not stop: descriptors that are open already, UDP and other
socket families, memory files (seccomp and namespaces do).
"""

import os
import struct

from . import kernel

_FILE_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}


def abi() -> int:
    """The Landlock ABI of the kernel; raises OSError where there is none."""
    return kernel.syscall(kernel.LANDLOCK_CREATE, 0, 0, 1)


def ruleset() -> int:
    """A descriptor of a ruleset that handles everything this kernel knows and allows nothing."""
    version = abi()
    files = (1 << _FILE_RIGHTS_BY_ABI[min(version, 5)]) - 1
    network = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    attributes = struct.pack("<QQQ", files, network, scopes)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    return kernel.syscall(kernel.LANDLOCK_CREATE, attributes, size, 0)


def restrict(descriptor: int) -> None:
    """Enforce the ruleset on this process for good; needs no_new_privs."""
    kernel.syscall(kernel.LANDLOCK_RESTRICT, descriptor, 0)


def restrict_once() -> None:
    """Build a ruleset, enforce it, close it."""
    descriptor = ruleset()
    restrict(descriptor)
    os.close(descriptor)
