"""The policy: a causal language model with its tokenizer, how it is loaded, adapted and sampled.

Everything here may import torch and transformers, but only inside functions or behind `outpace.policy`, never from
the core. Not here: the trainer (`outpace.training`) and the rules that candidates must obey (`outpace.static_check`).
"""

from importlib.util import find_spec

from outpace.errors import ModelError

for _package in ("torch", "transformers"):
    if find_spec(_package) is None:
        raise ModelError(f"Models need the package {_package}: run `python -m pip install 'outpace[train]'`.")

from outpace.policy.load import Policy, load  # noqa: E402
from outpace.policy.lora import attach_lora, count_parameters  # noqa: E402
from outpace.policy.sampler import Generation, SamplingSettings, sample  # noqa: E402

__all__ = ["Generation", "Policy", "SamplingSettings", "attach_lora", "count_parameters", "load", "sample"]
