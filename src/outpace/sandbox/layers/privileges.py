"""Root becomes nobody, capabilities go, nothing can be regained.

Stops: everything that root may do. Does not stop an ordinary user's rights (files, sockets, processes): the other
layers do.
"""

import os
import struct

from . import kernel

NOBODY = 65534


def become_nobody() -> None:
    """Give up root for good; an ordinary user stays who it is."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def drop_capabilities() -> None:
    """Empty every capability set (a new user namespace grants them all within itself)."""
    header = struct.pack("<Ii", 0x20080522, 0)
    kernel.syscall(kernel.CAPSET_CALL, header, bytes(24))


def seal() -> None:
    """No exec can raise privileges, and no other process of the same user can look in."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
