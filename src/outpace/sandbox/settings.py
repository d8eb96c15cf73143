"""What a sandbox is made of: the layers, and the frozen settings that switch them one by one.

A layer that is switched off here is a test's or an audit's choice; a layer that the machine does not grant is
found out by `zygote.py` and reported in `Isolation.missing`. Nothing here starts a process.
"""

from dataclasses import dataclass
from enum import StrEnum

from outpace.errors import ConfigError


class Layer(StrEnum):
    """One defence; each has a switch (`SandboxSettings.without`) and a test that its attack works when it is off."""

    ENVIRONMENT = "environment"
    """An empty environment and no inherited file descriptors; off: the caller's variables are visible."""
    PRIVILEGES = "privileges"
    """Root becomes nobody, capabilities are dropped, no_new_privs is set, the process is not dumpable."""
    NAMESPACES = "namespaces"
    """Own user, pid, net, ipc, uts and mount namespaces; the root directory is an empty read-only tmpfs."""
    LANDLOCK = "landlock"
    """No file can be opened, no TCP port bound or connected, no process outside the child signalled."""
    SECCOMP = "seccomp"
    """About 40 system calls are left; no process, thread, socket, file or executable mapping can be made."""
    RLIMITS = "rlimits"
    """Address space, CPU seconds, file size, open files, processes and core dumps are bounded by the kernel."""
    ASLR_OFF = "aslr_off"
    """Address-space randomisation is off in the zygote: without it identical code is timed up to 1.65x apart."""
    USAGE_CHECK = "usage_check"
    """CPU time that was charged to no call, and bytes that answer no call, are TAMPERING when a child ends."""


ALL_LAYERS = frozenset(Layer)

REQUIRED = frozenset({Layer.LANDLOCK, Layer.SECCOMP})
"""Without both of these a sandbox refuses to start unless `allow_weak_isolation`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """How one sandbox is built.

    `core` pins zygote and children to one core; timing is exact only when the calling thread is pinned to the same
    one (`Pool` does that in each scorer). `hash_seed` fixes the order
    of sets and of string hashes, so that candidate and reference see the same one.
    """

    core: int | None = None
    without: frozenset[Layer] = frozenset()
    allow_weak_isolation: bool = False
    hash_seed: int = 0
    start_timeout_s: float = 20.0

    def __post_init__(self) -> None:
        unknown = [name for name in self.without if name not in ALL_LAYERS]
        if unknown:
            raise ConfigError(f"unknown sandbox layer {unknown[0]!r}; known are {', '.join(sorted(ALL_LAYERS))}")
        if self.core is not None and self.core < 0:
            raise ConfigError(f"core must be the number of a CPU, got {self.core}")
        if not 0 <= self.hash_seed <= 2**32 - 1:
            raise ConfigError(f"hash_seed must be between 0 and 4294967295, got {self.hash_seed}")

    @property
    def layers(self) -> frozenset[Layer]:
        """The layers that are asked for."""
        return ALL_LAYERS - self.without
