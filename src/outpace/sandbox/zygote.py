"""The fork server: a small, clean interpreter that gives up its rights, warms up, and forks a child per candidate.

Standard library only, nothing of ours outside this folder. It is exec'd by `process.py` with an empty environment
and a fixed hash seed, never forked from the caller, so a large, threaded or CUDA-initialised caller costs nothing.
It reads commands of the caller and never a byte of a child. It ends when the caller ends or closes the channel.

Commands (datagrams): `F` + a socket: fork a child that serves on it. `R` + pid: reap that child, answer with its
wait status, CPU microseconds and peak memory.
"""

import _socket
import builtins
import gc
import marshal
import os
import select
import struct
import sys
import warnings
from collections.abc import Callable
from typing import Any

from . import child, memory
from .layers import kernel, landlock, namespaces, privileges, probe, rlimits, seccomp

SIGKILL = 9
CHANNEL = 3
"""The descriptor of a child's socket; 0, 1 and 2 are the null device."""
REAPED = struct.Struct("<iiqq")

_NOT_FOR_CANDIDATES = {"_ctypes", "_socket", "ctypes", "ctypes._endian", "gc", "select"}
"""Forgotten, so that an import fails at once; no boundary, since a child could still find them in memory."""

_WARM_UP = """
def entry(rows):
    total = [sum(x * y for x, y in zip(row, row)) for row in rows]
    return [[float(x) for x in row] for row in rows], {"total": total}, (str(len(rows)), None, True)
"""
_WARM_UP_ARGS = ([[1.0, 2.0], [3.0, 4.0]],)


def main(control: int, settings: dict[str, Any]) -> None:
    """Set up, report what is in force, serve until the caller goes."""
    if "aslr_off" in settings["layers"] and not kernel.has_fixed_addresses() and kernel.fix_addresses():
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606 - the same program again, now at fixed addresses
    channel = _socket.socket(fileno=control)
    zygote = Zygote(channel, settings)
    try:
        zygote.set_up()
    except Exception as error:
        channel.send(marshal.dumps({"error": f"{type(error).__name__}: {error}"}, 2))
        raise
    channel.send(marshal.dumps({"in_force": sorted(zygote.in_force), "missing": zygote.missing}, 2))
    zygote.serve()


class Zygote:
    """One fork server: which layers are in force, and how a child locks itself in."""

    def __init__(self, channel: _socket.socket, settings: dict[str, Any]) -> None:
        self.channel = channel
        self.asked = set(settings["layers"])
        self.core = settings["core"]
        self.modules = settings["modules"]
        self.in_force: set[str] = set()
        self.missing: dict[str, str] = {}
        self.caller = os.pidfd_open(os.getppid())
        self.ruleset: int | None = None
        self.filter: seccomp.Filter | None = None

    def set_up(self) -> None:
        """Everything that is done once, in an order that matters: files first, rights last."""
        if self.core is not None:
            os.sched_setaffinity(0, {self.core})
        self.preload()
        self.silence()
        proc = memory.open_proc()
        memory.merge_mappings(proc)
        self.enter_namespaces()
        self.give_up_privileges()
        self.probe_and_prepare()
        self.warm_up(proc)
        if proc is not None:
            os.close(proc)
        if "rlimits" in self.in_force:
            rlimits.bound_forever()
        if "privileges" in self.in_force:
            privileges.hide()
        if self.filter is not None:
            seccomp.Filter(seccomp.program()).enforce()

    def preload(self) -> None:
        """Import what honest programs use: a locked child can neither read files nor map a library."""
        sys.modules["_hashlib"] = None  # type: ignore[assignment]  # hashlib without OpenSSL: 5 MB less to copy
        for name in self.modules:
            __import__(name)
        del sys.modules["_hashlib"]
        if "environment" in self.asked:
            os.environ.clear()
            self.in_force.add("environment")
        if "aslr_off" in self.asked:
            self.note("aslr_off", None if kernel.has_fixed_addresses() else "the kernel does not grant it")
        warnings.simplefilter("ignore")
        vars(builtins).update(exit=sys.exit, quit=sys.exit)  # `site` would have made these
        sys.path.clear()
        sys.path_importer_cache.clear()
        sys.argv, sys.orig_argv = [""], []
        for name in _NOT_FOR_CANDIDATES | {name for name in sys.modules if name.split(".")[0] == __package__}:
            sys.modules.pop(name, None)

    def silence(self) -> None:
        """Standard streams go nowhere: output costs the candidate time and us nothing."""
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.close(null)

    def enter_namespaces(self) -> None:
        """Enter them and go on as the first process inside; the process outside only waits for us."""
        if "privileges" in self.asked:
            privileges.become_nobody()
        if "namespaces" not in self.asked:
            return
        self.note("namespaces", probe.namespaces_work())
        if "namespaces" not in self.in_force:
            return
        namespaces.enter()
        pid = kernel.fork()
        if pid:
            self.channel.close()
            os.waitpid(pid, 0)
            os._exit(0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, SIGKILL)
        namespaces.hide_files()

    def give_up_privileges(self) -> None:
        """For good: nothing that runs from here on can regain a right."""
        if "privileges" in self.asked:
            privileges.drop_capabilities()
            privileges.seal()
            self.note("privileges", probe.privileges_work())
        elif self.asked & {"landlock", "seccomp"}:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)  # both refuse to work without it

    def probe_and_prepare(self) -> None:
        """Try each layer in a throw-away child and build, once, what the children will enforce."""
        if "rlimits" in self.asked:
            self.note("rlimits", probe.rlimits_work())
        if "landlock" in self.asked:
            self.note("landlock", probe.landlock_works())
            if "landlock" in self.in_force:
                self.ruleset = landlock.ruleset()
        if "seccomp" in self.asked:
            self.note("seccomp", probe.seccomp_works())
            if "seccomp" in self.in_force:
                self.filter = seccomp.Filter(seccomp.closing_program())

    def note(self, layer: str, why_not: str | None) -> None:
        """Record that a layer is in force, or why it is not."""
        if why_not is None:
            self.in_force.add(layer)
        else:
            self.missing[layer] = why_not

    def warm_up(self, proc: int | None) -> None:
        """Serve a dummy candidate, in place and in real children: later children find everything specialised,
        cached and touched, and what they will write is copied at fork."""
        for _ in range(20):
            found: list[object] = []
            child.attempt(child.load, _WARM_UP, "entry", found)
            child.attempt(child.call, found[0], _WARM_UP_ARGS, True, 1 << 20)
        sys.modules.pop(child.MODULE_NAME, None)
        self.rehearse()
        gc.collect()
        gc.freeze()
        gc.disable()
        self.rehearse()
        self.rehearse(lambda: memory.pin_written_pages(proc))

    def rehearse(self, at_its_end: Callable[[], object] = bool) -> None:
        """One real child with a dummy candidate; `at_its_end` runs while it still lives."""
        ours, theirs = _socket.socketpair()
        pid = self.fork(theirs.detach())
        channel = ours.fileno()
        child.read_exactly(channel, 4)
        for frame in ((_WARM_UP, "entry", True, 1 << 20, 1 << 29, 10), _WARM_UP_ARGS):
            body = marshal.dumps(frame, 2)
            ours.send(len(body).to_bytes(4, "little") + body)
            length, _, _ = child.REPLY_HEADER.unpack(child.read_exactly(channel, child.REPLY_HEADER.size))
            child.read_exactly(channel, length)
        at_its_end()
        ours.close()
        os.waitpid(pid, 0)

    def serve(self) -> None:
        """Answer commands until the caller closes the channel or dies."""
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        poll.register(self.caller, select.POLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if descriptor == self.caller:
                    os._exit(0)
                message, ancillary, _, _ = self.channel.recvmsg(16, _socket.CMSG_SPACE(4))
                if not message:
                    os._exit(0)
                if message[:1] == b"F":
                    self.fork(int.from_bytes(ancillary[0][2], sys.byteorder))
                else:
                    self.reap(int.from_bytes(message[1:], "little"))

    def fork(self, descriptor: int) -> int:
        """A child that serves on `descriptor`; in the child this never returns."""
        pid = kernel.fork()
        if pid == 0:
            try:
                os.dup2(descriptor, CHANNEL)
                os.write(CHANNEL, os.getpid().to_bytes(4, "little"))
                child.serve(CHANNEL, self.lock)
            finally:
                os._exit(1)
        os.close(descriptor)
        return pid

    def reap(self, pid: int) -> None:
        """Wait for a child that has been killed and report what it used."""
        _, status, usage = os.wait4(pid, 0)
        cpu_us = round((usage.ru_utime + usage.ru_stime) * 1e6)
        self.channel.send(REAPED.pack(pid, status, cpu_us, usage.ru_maxrss * 1024))

    def lock(self, memory_bytes: int, cpu_s: int) -> None:
        """In the child, before any candidate code: give up what is left."""
        kernel.prctl(kernel.PR_SET_PDEATHSIG, SIGKILL)
        if "rlimits" in self.in_force:
            rlimits.bound(memory_bytes, cpu_s)
        if self.ruleset is not None:
            landlock.restrict(self.ruleset)
        os.closerange(CHANNEL + 1, 64)
        if self.filter is not None:
            self.filter.enforce()
