"""Peak memory of this process. Never imports torch: it asks torch only where somebody else has loaded it."""

import resource
import sys

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes per unit of `ru_maxrss`: macOS counts bytes, Linux KiB."""


def peak_rss_bytes() -> int:
    """Largest resident size of this process since it started; children are not in it."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def peak_cuda_bytes() -> int | None:
    """Most that torch has reserved on any one GPU since the last reset; None without torch or a GPU in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return None
    return max(int(torch.cuda.max_memory_reserved(device)) for device in range(torch.cuda.device_count()))


def reset_cuda_peak() -> None:
    """Forget the GPU peak so far; does nothing without torch or a GPU in use."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(device)
