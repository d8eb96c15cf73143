"""The parent's handle of a zygote: start it, ask it for children, have them reaped, end it.

The zygote is exec'd with an empty environment; nothing of the caller (threads, CUDA, open files, 10 GB of memory)
is copied. Not covered: what a child is asked to do (`instance.py`).
"""

import contextlib
import marshal
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from outpace.errors import SandboxUnavailable
from outpace.sandbox import wire
from outpace.sandbox.layers import kernel
from outpace.sandbox.settings import REQUIRED, Layer, SandboxSettings
from outpace.schema import Isolation

MODULES = (
    *("__future__", "abc", "array", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys"),
    *("collections.abc", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum"),
    *("fractions", "functools", "graphlib", "hashlib", "heapq", "html", "io", "itertools", "json", "keyword", "math"),
    *("numbers", "operator", "pprint", "random", "re", "reprlib", "statistics", "string", "struct", "textwrap", "time"),
    *("types", "typing", "unicodedata", "warnings", "zlib", "_strptime", "copyreg", "locale"),
)
"""What a child can import; everything else is ModuleNotFoundError there."""

_BOOT = (
    "import sys, types, marshal; package = types.ModuleType('sandbox'); package.__path__ = [sys.argv[1]]; "
    "sys.modules['sandbox'] = package; from sandbox import zygote; "
    "zygote.main(int(sys.argv[2]), marshal.loads(bytes.fromhex(sys.argv[3])))"
)
_REAPED = struct.Struct("<iiqq")
_REPLY_GRACE_S = 10.0


class Zygote:
    """The parent's handle of one zygote process."""

    def __init__(self, settings: SandboxSettings) -> None:
        if sys.platform != "linux":
            raise SandboxUnavailable(
                f"the sandbox needs Linux (this is {sys.platform}): run outpace in a Linux virtual machine or container"
            )
        if kernel.ARCHITECTURE not in kernel.ARCHITECTURES:
            raise SandboxUnavailable(
                f"the sandbox knows the system calls of {' and '.join(kernel.ARCHITECTURES)} only "
                f"(this is {kernel.ARCHITECTURE}): run outpace on one of those"
            )
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        asked = {"layers": sorted(layer.value for layer in settings.layers), "core": settings.core, "modules": MODULES}
        here = str(Path(__file__).parent)
        flags = ["-P", "-s", "-S", "-B", "-X", "utf8"]
        environment = {"PYTHONHASHSEED": str(settings.hash_seed), "LD_BIND_NOW": "1"}
        if Layer.ENVIRONMENT not in settings.layers:
            environment = {**os.environ, **environment}
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, *flags, "-c", _BOOT, here, str(theirs.fileno()), marshal.dumps(asked).hex()],
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
            )
        report = self._greeting(settings.start_timeout_s)
        self.in_force = frozenset(Layer(name) for name in report["in_force"]) | (settings.layers & {Layer.USAGE_CHECK})
        self.missing = {str(name): str(why) for name, why in report["missing"].items()}

    def _greeting(self, timeout_s: float) -> Any:
        self.channel.settimeout(timeout_s)
        try:
            message = self.channel.recv(1 << 16)
            report = wire.decode(message) if message else {"error": "it ended before it was ready"}
        except OSError as error:
            report = {"error": f"no answer within {timeout_s} s ({error})"}
        if "error" in report:
            self.end()
            raise SandboxUnavailable(f"the zygote could not be started: {report['error']}")
        self.channel.settimeout(_REPLY_GRACE_S)
        return report

    def isolation(self, settings: SandboxSettings) -> Isolation:
        """What is in force, for the calling thread."""
        missing = {**self.missing, **{layer.value: "switched off" for layer in settings.without}}
        level = "weak" if self.in_force else "none"
        if self.in_force >= REQUIRED:
            level = "strict" if missing else "full"
        layers = tuple(sorted(layer.value for layer in self.in_force))
        return Isolation(level=level, layers=layers, missing=missing, clock=self.clock(settings))

    def clock(self, settings: SandboxSettings) -> str:
        """`exact` when the calling thread and the children, which cannot leave it, share one core."""
        pinned = settings.core is not None and os.sched_getaffinity(0) == {settings.core}
        return "exact" if pinned and Layer.SECCOMP in self.in_force else "unpinned"

    def fork(self, child_end: socket.socket) -> None:
        """Send a socket to a new child."""
        socket.send_fds(self.channel, [b"F"], [child_end.fileno()])

    def reap(self, pid: int) -> tuple[int, int, int]:
        """Wait status, CPU microseconds and peak memory of a killed child; raises SandboxUnavailable."""
        try:
            self.channel.send(b"R" + pid.to_bytes(4, "little"))
            answered, status, cpu_us, max_rss_bytes = _REAPED.unpack(self.channel.recv(_REAPED.size))
        except (OSError, struct.error) as error:
            raise SandboxUnavailable("the fork server died with a call in flight") from error
        if answered != pid:
            raise SandboxUnavailable("the zygote answered about another child")
        return status, cpu_us, max_rss_bytes

    def end(self) -> None:
        """End the zygote, its waiting parent and every child."""
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)  # reaches copies of it that a fork of the caller holds
        self.channel.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
