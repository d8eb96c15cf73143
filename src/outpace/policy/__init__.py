"""The policy: a causal language model with its tokenizer, how it is loaded, adapted and sampled.

Everything here may import torch and transformers, but only inside functions or behind `outpace.policy`, never from
the core. Not here: the trainer (`outpace.training`) and the rules that candidates must obey (`outpace.static_check`).
"""

from outpace.policy.load import Policy, load
from outpace.policy.lora import attach_lora, count_parameters
from outpace.policy.sampler import Generation, SamplingSettings, sample

__all__ = ["Generation", "Policy", "SamplingSettings", "attach_lora", "count_parameters", "load", "sample"]
