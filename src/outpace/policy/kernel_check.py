"""Whether Triton's kernels run on a device: asked once, by running a small one.

Triton can be installed and yet fail: it builds its launcher with a C compiler and Python's headers at the first use.
"""

import warnings
from functools import cache
from importlib.util import find_spec

import torch

KERNEL_TYPES = (torch.float32, torch.bfloat16, torch.float16)
"""Number formats that the sampler's kernels are written for."""
_LEAST_CAPABILITY = (8, 0)  # Triton supports no older NVIDIA GPU


@cache
def runs_kernels(device: torch.device) -> bool:
    """Return whether kernels run there; warns where they should and do not."""
    if device.type != "cuda" or find_spec("triton") is None:
        return False
    if torch.cuda.get_device_capability(device) < _LEAST_CAPABILITY:
        return False
    try:
        from outpace.policy.decode_kernels import silu_mul

        with torch.cuda.device(device):
            silu_mul(torch.ones(1, 2, device=device))
    except Exception as failure:  # whatever it is, sampling goes on without
        warnings.warn(f"Triton's kernels do not run on {device}, so sampling is slower: {failure}", stacklevel=2)
        return False
    return True
