"""Ways out of a child, with no static check in front: each returns True when it got through.

`stopped_by` are the layers that each stop it alone. At the full level none gets through; with all of its layers
off each must get through, or the test would prove nothing.
"""

from dataclasses import dataclass

from outpace.sandbox import Layer

# A child that looks hard enough finds the C library and sockets in the memory of the interpreter that forked it.
PRELUDE = """
import os, sys, _thread
frame = sys._getframe()
while "kernel" not in frame.f_globals:
    frame = frame.f_back
kernel, _socket = frame.f_globals["kernel"], frame.f_globals["_socket"]
"""


@dataclass(frozen=True)
class Leak:
    name: str
    body: str
    stopped_by: frozenset[Layer]
    only_root: bool = False

    @property
    def source(self) -> str:
        lines = "\n".join("    " + line for line in self.body.strip().splitlines())
        return f"{PRELUDE}\ndef f(host_pid, port, folder):\n{lines}\n"


N, L, S, R, P, E = (
    Layer.NAMESPACES,
    Layer.LANDLOCK,
    Layer.SECCOMP,
    Layer.RLIMITS,
    Layer.PRIVILEGES,
    Layer.ENVIRONMENT,
)
FILES = frozenset({N, L, S, R})
TRACE = "kernel.syscall(101, 0x4206, os.getppid(), 0, 0); return True"

LEAKS = [
    Leak("reads a host file", 'return "root" in open("/etc/passwd").read()', FILES),
    Leak("lists a host folder", 'return bool(os.listdir("/etc"))', FILES),
    Leak("writes outside", 'open(folder + "/planted", "w").write("x"); return True', FILES | {P}),
    Leak("writes shared memory files", 'open("/dev/shm/outpace-leak-test", "w").close(); return True', FILES),
    Leak("reads /proc of the caller", 'return bool(open(f"/proc/{host_pid}/cmdline").read())', FILES),
    Leak("reads its own /proc", 'return bool(open("/proc/self/maps").read())', FILES),
    Leak("reads the environment", 'return "OUTPACE_LEAK_TEST" in os.environ', frozenset({E})),
    Leak(
        "connects to a TCP port of the host",
        's = _socket.socket(); s.connect(("127.0.0.1", port)); return True',
        frozenset({N, L, S, R}),
    ),
    Leak("signals the fork server", "os.kill(os.getppid(), 0); return True", frozenset({L, S})),
    Leak("traces the fork server", TRACE, frozenset({S, L, P})),
    Leak("makes a process", "if os.fork() == 0:\n    os._exit(0)\nos.wait(); return True", frozenset({S, R})),
    Leak("makes a thread", "_thread.start_new_thread(print, ()); return True", frozenset({S, R})),
    Leak("makes a memory file", 'return os.memfd_create("x") > 0', frozenset({S, R})),
    Leak(
        "makes a System V shared memory segment",
        "segment = kernel.syscall(29, 0, 4096, 0o1600); kernel.syscall(31, segment, 0, 0); return True",
        frozenset({S}),
    ),
    Leak("leaves its core", "os.sched_setaffinity(0, {0}); return True", frozenset({S})),
    Leak(
        "maps executable memory",
        "return kernel.syscall(9, 0, 4096, 7, 0x22, 2**64 - 1, 0) != 0",
        frozenset({S}),
    ),
    Leak("allocates without end", "return len(bytes(2**30)) > 0", frozenset({R})),
    Leak("becomes root", "os.setuid(0); return os.getuid() == 0", frozenset({P, S}), only_root=True),
    *(
        Leak(
            f"opens a socket of family {name}",
            f"_socket.socket({family}, {kind}, {protocol}); return True",
            frozenset({S, R}),
        )
        for name, family, kind, protocol in (
            ("UNIX", 1, 1, 0),
            ("INET", 2, 2, 0),
            ("INET6", 10, 2, 0),
            ("NETLINK", 16, 3, 0),
        )
    ),
]

KILLED_CALLS = {
    "io_uring_setup": 425,
    "ptrace": 101,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "bpf": 321,
    "userfaultfd": 323,
    "perf_event_open": 298,
    "unshare": 272,
    "setns": 308,
    "mount": 165,
    "keyctl": 250,
    "memfd_create": 319,
    "pidfd_open": 434,
    "clone3": 435,
    "execve": 59,
    "prctl": 157,
    "seccomp": 317,
}
"""x86-64 numbers of calls that end a child by SIGSYS."""
