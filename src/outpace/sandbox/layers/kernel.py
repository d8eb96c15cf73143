"""System calls that Python has no function for, through ctypes on the C library.

Standard library only. Linux on x86-64 and AArch64; `SUPPORTED` is False elsewhere and nothing here may be called.
"""

import ctypes
import os
import sys
from typing import Any

ARCHITECTURES = ("x86_64", "aarch64")
ARCHITECTURE = os.uname().machine if hasattr(os, "uname") else ""
SUPPORTED = sys.platform == "linux" and ARCHITECTURE in ARCHITECTURES and sys.maxsize > 2**32

_libc: Any = ctypes.CDLL(None, use_errno=True) if SUPPORTED else None
if SUPPORTED:
    _libc.syscall.restype = ctypes.c_long
_libc_with_gil: Any = ctypes.PyDLL(None) if SUPPORTED else None

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
ADDR_NO_RANDOMIZE = 0x0040000
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 1 << 18
LANDLOCK_CREATE, LANDLOCK_RESTRICT = 444, 446
SECCOMP_CALL = 317 if ARCHITECTURE == "x86_64" else 277
CAPSET_CALL = 126 if ARCHITECTURE == "x86_64" else 91


def checked(result: int) -> int:
    """`result`, or OSError with errno when it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def prctl(option: int, *values: int) -> int:
    """`prctl(2)`."""
    numbers = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return checked(_libc.prctl(option, *numbers))


def syscall(number: int, *arguments: Any) -> int:
    """`syscall(2)`; integers are passed as unsigned 64-bit numbers."""
    values = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    return checked(_libc.syscall(ctypes.c_long(number), *values))


def fork() -> int:
    """`fork(2)` without Python's fork hooks, for a process of one thread.

    `os.fork` also reseeds `random` and rebuilds `threading`'s state in the child: 700 us and 160 page faults that
    nobody needs here, and a different random state in every child.
    """
    return int(_libc_with_gil.fork())


def has_fixed_addresses() -> bool:
    """Whether this program was started without address-space randomisation."""
    now = _libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    return bool(now != -1 and now & ADDR_NO_RANDOMIZE)


def fix_addresses() -> bool:
    """Switch randomisation off for programs that this process execs; False where that is refused."""
    now = _libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    if now != -1:
        _libc.personality(ctypes.c_ulong(now | ADDR_NO_RANDOMIZE))
    return has_fixed_addresses()


def protect(address: int, length: int, rights: int) -> None:
    """`mprotect(2)`."""
    checked(_libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), rights))


def unshare(flags: int) -> None:
    """`unshare(2)`."""
    checked(_libc.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """`mount(2)`."""
    checked(_libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()))
