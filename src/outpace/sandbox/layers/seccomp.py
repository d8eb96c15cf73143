"""seccomp: an allow-list of about 40 system calls, enough for Python code that computes and answers.

Two filters in a row: the fork server's own allows those and what forking and reaping need; a child adds one that
takes the latter away. Installing the large one once, and a dozen instructions per child, saves 100 us an execution.

Stops: processes, threads, exec, sockets, opening or making files, memory files, signals to others, ptrace, new
executable memory, changing limits, priority or affinity. Acts that no computing program needs end the process by
SIGSYS, so that they can be told apart; everything else unknown fails with EPERM. Does not stop: computing, memory
use, reading and writing the descriptors 0 to 3 (a sink and the channel).
"""

import ctypes
import struct

from . import kernel

_ALLOW, _DENY, _KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000
_LOAD, _GE, _EQ, _AND_SET, _RETURN = 0x20, 0x35, 0x15, 0x45, 0x06
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_PROT_EXEC, _TCGETS, _LAST_DESCRIPTOR = 4, 0x5401, 3

Instruction = tuple[int, int, int, int]

_X86_64 = """
read 0 write 1 close 3 fstat 5 poll 7 lseek 8 mmap 9 mprotect 10 munmap 11 brk 12 rt_sigaction 13 rt_sigprocmask 14
rt_sigreturn 15 ioctl 16 sched_yield 24 mremap 25 madvise 28 nanosleep 35 getpid 39 exit 60 uname 63 gettimeofday 96
getrusage 98 sysinfo 99 times 100 getuid 102 getgid 104 geteuid 107 getegid 108 getppid 110 sigaltstack 131 gettid 186
time 201 futex 202 restart_syscall 219 clock_gettime 228 clock_getres 229 clock_nanosleep 230 exit_group 231
ppoll 271 set_robust_list 273 getcpu 309 getrandom 318 rseq 334 prlimit64 302
wait4 61 dup2 33 dup3 292 close_range 436
shmget 29 shmat 30 shmctl 31 socket 41 connect 42 accept 43 sendto 44 sendmsg 46 recvmsg 47 bind 49 listen 50
socketpair 53 clone 56 fork 57 vfork 58 execve 59 kill 62 semget 64 msgget 68 ptrace 101 rt_sigqueueinfo 129
personality 135 setpriority 141 sched_setparam 142 sched_setscheduler 144 pivot_root 155 prctl 157 setrlimit 160
chroot 161 mount 165 umount2 166 tkill 200 sched_setaffinity 203 mq_open 240 add_key 248 request_key 249 keyctl 250
unshare 272 perf_event_open 298 setns 308 process_vm_readv 310 process_vm_writev 311 seccomp 317 memfd_create 319
bpf 321 execveat 322 userfaultfd 323 pidfd_send_signal 424 io_uring_setup 425 pidfd_open 434 clone3 435
landlock_restrict_self 446
"""
_AARCH64 = """
read 63 write 64 close 57 fstat 80 lseek 62 mmap 222 mprotect 226 munmap 215 brk 214 rt_sigaction 134
rt_sigprocmask 135 rt_sigreturn 139 ioctl 29 sched_yield 124 mremap 216 madvise 233 nanosleep 101 getpid 172 exit 93
uname 160 gettimeofday 169 getrusage 165 sysinfo 179 times 153 getuid 174 getgid 176 geteuid 175 getegid 177
getppid 173 sigaltstack 132 gettid 178 futex 98 restart_syscall 128 clock_gettime 113 clock_getres 114
clock_nanosleep 115 exit_group 94 ppoll 73 set_robust_list 99 getcpu 168 getrandom 278 rseq 293 prlimit64 261
wait4 260 dup3 24 close_range 436
shmget 194 shmat 196 shmctl 195 socket 198 connect 203 accept 202 sendto 206 sendmsg 211 recvmsg 212 bind 200
listen 201 socketpair 199 clone 220 execve 221 kill 129 semget 190 msgget 186 ptrace 117 rt_sigqueueinfo 138
personality 92 setpriority 140 sched_setparam 118 sched_setscheduler 119 pivot_root 41 prctl 167 setrlimit 164
chroot 51 mount 40 umount2 39 tkill 130 sched_setaffinity 122 mq_open 180 add_key 217 request_key 218 keyctl 219
unshare 97 perf_event_open 241 setns 268 process_vm_readv 270 process_vm_writev 271 seccomp 277 memfd_create 279
bpf 280 execveat 281 userfaultfd 282 pidfd_send_signal 424 io_uring_setup 425 pidfd_open 434 clone3 435
landlock_restrict_self 446
"""
_FIRST_KILLED = "shmget"  # in both tables, everything from here on ends the process


FORK_SERVER_CALLS = (
    *("clone", "clone3", "fork", "vfork", "wait4", "recvmsg", "sendto", "dup2", "dup3", "close_range"),
    *("prctl", "seccomp", "landlock_restrict_self", "setrlimit", "prlimit64", "read", "write"),
)
"""What the fork server does and no child may: a child's answer to each is that of its own table."""


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * index)  # the low half of a little-endian 64-bit argument


def _high_argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, 20 + 8 * index)


_ACT_ALLOW: list[Instruction] = [(_RETURN, 0, 0, _ALLOW)]
_ACT_DENY: list[Instruction] = [(_RETURN, 0, 0, _DENY)]
_ACT_KILL: list[Instruction] = [(_RETURN, 0, 0, _KILL)]
_NOT_EXECUTABLE = [_argument(2), (_AND_SET, 0, 1, _PROT_EXEC), *_ACT_DENY, *_ACT_ALLOW]
_LOW_DESCRIPTOR = [_argument(0), (_GE, 0, 1, _LAST_DESCRIPTOR + 1), *_ACT_DENY, *_ACT_ALLOW]
_ONLY_READS_LIMITS = [
    _argument(2), (_EQ, 0, 2, 0), _high_argument(2), (_EQ, 1, 0, 0), *_ACT_KILL, *_ACT_ALLOW,
]  # fmt: skip
_ONLY_ASKS_TERMINAL = [_argument(1), (_EQ, 0, 1, _TCGETS), *_ACT_ALLOW, *_ACT_DENY]
_CONDITIONS = {
    "mmap": _NOT_EXECUTABLE,
    "mprotect": _NOT_EXECUTABLE,
    "read": _LOW_DESCRIPTOR,
    "write": _LOW_DESCRIPTOR,
    "ioctl": _ONLY_ASKS_TERMINAL,
    "prlimit64": _ONLY_READS_LIMITS,
    **dict.fromkeys(("wait4", "dup2", "dup3", "close_range"), _ACT_DENY),
}


def rules(architecture: str = kernel.ARCHITECTURE, *, for_child: bool = True) -> dict[int, list[Instruction]]:
    """What happens on each known system call number; every other number is denied with EPERM."""
    numbers = call_numbers(architecture)
    names = list(numbers)
    first_killed = names.index(_FIRST_KILLED)
    table = {
        number: _CONDITIONS.get(name, _ACT_ALLOW if position < first_killed else _ACT_KILL)
        for position, (name, number) in enumerate(numbers.items())
    }
    if not for_child:
        table |= dict.fromkeys((numbers[name] for name in FORK_SERVER_CALLS if name in numbers), _ACT_ALLOW)
    return table


def call_numbers(architecture: str) -> dict[str, int]:
    """The system calls that are told apart from "everything else", in the order of the tables above."""
    words = (_X86_64 if architecture == "x86_64" else _AARCH64).split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def program(architecture: str = kernel.ARCHITECTURE) -> bytes:
    """The fork server's filter: what a child may do, and what forking, reaping and locking a child in need."""
    return _assemble(rules(architecture, for_child=False), _ACT_DENY, architecture)


def closing_program(architecture: str = kernel.ARCHITECTURE) -> bytes:
    """The child's addition: everything that only the fork server needs goes; `program` is in force beside it."""
    numbers, table = call_numbers(architecture), rules(architecture)
    taken = {numbers[name]: table.get(numbers[name], _ACT_DENY) for name in FORK_SERVER_CALLS if name in numbers}
    return _assemble(taken, _ACT_ALLOW, architecture)


def _assemble(table: dict[int, list[Instruction]], otherwise: list[Instruction], architecture: str) -> bytes:
    """BPF code: a binary search over ranges of system call numbers (a dozen steps per call)."""
    starts: list[tuple[int, list[Instruction]]] = []
    for number in range(max(table) + 2):
        act = table.get(number, otherwise)
        if not starts or starts[-1][1] != act:
            starts.append((number, act))
    head: list[Instruction] = [
        (_LOAD, 0, 0, 4),
        (_EQ, 1, 0, _AUDIT_ARCH[architecture]),
        *_ACT_KILL,  # a foreign calling convention
        (_LOAD, 0, 0, 0),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in head + _search(starts))


def _search(starts: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """A decision tree: `starts` are the ranges, each with the number it begins at."""
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    left, right = _search(starts[:middle]), _search(starts[middle:])
    if len(left) > 255:
        raise ValueError("the filter has grown too large for one jump")
    return [(_GE, len(left), 0, starts[middle][0]), *left, *right]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


class Filter:
    """A filter ready to be enforced: built once in the zygote, used by each child."""

    def __init__(self, code: bytes) -> None:
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = _Program(len(code) // 8, ctypes.addressof(self._code))
        self._reference = ctypes.byref(self._program)

    def enforce(self) -> None:
        """From now on, for good, this process may only do what the filter allows; needs no_new_privs."""
        kernel.syscall(kernel.SECCOMP_CALL, 1, 0, self._reference)
