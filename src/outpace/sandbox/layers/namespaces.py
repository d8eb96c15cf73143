"""Own user, pid, network, IPC, UTS and mount namespaces, and an empty root directory.

Stops: seeing or signalling host processes, every network, System V and POSIX shared memory, the whole file tree.
Does not stop: processes and threads inside (seccomp does), use of what is already open (nothing is).
Not granted in many containers; Landlock and seccomp stop the same acts without it.
"""

import os

from . import kernel

_FLAGS = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWNS
)


def enter() -> None:
    """Move this process into new namespaces; its next child is the first process of the new pid namespace."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(_FLAGS)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123 - pathlib would stay in every child's memory
        file.write(text)


def hide_files() -> None:
    """Make an empty read-only tmpfs the root directory; needs the capabilities of a new user namespace."""
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    flags = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("tmpfs", "/tmp", "tmpfs", flags, "size=4k,nr_inodes=2")  # noqa: S108 - any folder serves as mount point
    os.chroot("/tmp")  # noqa: S108
    os.chdir("/")
