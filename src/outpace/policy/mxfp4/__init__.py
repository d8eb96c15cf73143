"""gpt-oss in 4 bits: experts stay packed as the checkpoint holds them, and LoRA trains attention and experts.

Reading order: `packing` (the number format), `grouped` (products with packed experts), `kernels` (on a GPU),
`experts` (the layer), `compact` (attention, embedding and head in little memory), `attention` (sinks), `build` and
`read` (checkpoint to model), `adapters` (LoRA in PEFT's layout), `merge` (export), `census` (what is packed, what is
trained), `scoring`, `host_adam` and `host_checkpoint` (what a small card needs besides). Not covered: mixtures of
experts other than gpt-oss, and training of the packed weights themselves.
"""

from outpace.policy.mxfp4.adapters import attach, attach_saved, is_packed
from outpace.policy.mxfp4.build import load_network, random_network
from outpace.policy.mxfp4.census import Census, census
from outpace.policy.mxfp4.merge import export_packed
from outpace.policy.storage import Storage

__all__ = [
    "Census",
    "Storage",
    "attach",
    "attach_saved",
    "census",
    "export_packed",
    "is_packed",
    "load_network",
    "random_network",
]
