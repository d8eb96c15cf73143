"""Root becomes a user without rights, capabilities go, nothing can be regained.

Stops: everything that root may do. Does not stop an ordinary user's rights (files, sockets, processes): the other
layers do.
"""

import os
import struct

from . import kernel

NOBODY = 65534
_OWN_USERS = 1_900_000_000
"""Above every id that systems hand out; each zygote takes one for itself: nobody else's process shares its user."""


def become_nobody() -> None:
    """Give up root for good, for a user id of our own, or `nobody`; an ordinary user stays who it is.

    Root of a container that maps no other id stays too, without capabilities: the probe then tells.
    """
    if os.geteuid() != 0:
        return
    for user in (_OWN_USERS + os.getpid(), NOBODY):
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError:
            continue
        break
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else /proc/self belongs to root from here on; `hide` takes it back


def drop_capabilities() -> None:
    """Empty every capability set (root has them, and a new user namespace grants them within itself)."""
    header = struct.pack("<Ii", 0x20080522, 0)
    kernel.syscall(kernel.CAPSET_CALL, header, bytes(24))


def seal() -> None:
    """No exec can raise privileges from here on."""
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)


def hide() -> None:
    """No other process of the same user can look in or trace; also closes this process's own /proc files to it."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
