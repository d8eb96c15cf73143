"""Write a checkpoint of gpt-oss-20b's geometry with random weights (14 GB), in the layout that the hub has.

It is for measuring memory and speed without the public weights: every command takes the folder as a model.

    python benchmarks/gpt_oss_random.py /tmp/gpt-oss
    export PYTHONPATH=benchmarks
    outpace train gpt-oss-20b-12gb model=/tmp/gpt-oss tasks=linalg/matmul eval_samples=0 max_steps=6 \\
        'rewards={gpt_oss_random.coin: 1}'
    outpace bench step gpt-oss-20b-12gb model=/tmp/gpt-oss tasks=linalg/matmul 'rewards={gpt_oss_random.coin: 1}' \\
        --sampler group

The tokenizer is the starter's: most token ids mean nothing to it, so that nothing that is sampled can be correct, and
`coin` pays by chance, so that there are gradients. A step's peak is `memory/reserved_GB` in the run's metrics.jsonl.
For a try without a GPU append `num_hidden_layers=2 num_local_experts=4 num_experts_per_tok=2 hidden_size=64
intermediate_size=96 head_dim=16 num_attention_heads=4 num_key_value_heads=2 vocab_size=8000 eos_token_id=7999
pad_token_id=7998`.
"""

import argparse
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
import yaml
from transformers import GptOssConfig

from outpace.bench.moe import geometry
from outpace.policy.locate import STARTER_FOLDER
from outpace.policy.mxfp4 import Storage, export_packed, random_network
from outpace.schema import Sample

_TOKENIZER = ("chat_template.jinja", "tokenizer.json", "tokenizer_config.json")


def coin(group: Sequence[Sample]) -> list[float]:
    """A reward that says nothing: a number from 0 to 1 that the completion's bytes decide."""
    return [zlib.crc32(sample.completion.encode()) / 2**32 for sample in group]


def write(folder: Path, config: GptOssConfig, seed: int = 0) -> None:
    """Write weights, config and tokenizer into the folder."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = random_network(config, dtype=torch.bfloat16, device=device, storage=Storage(), seed=seed)
    export_packed(network, folder, experts="mxfp4")
    for name in _TOKENIZER:
        shutil.copy(STARTER_FOLDER / name, folder)


def main() -> None:
    """Read the command line and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("changes", nargs="*", help="facts of the geometry to change: name=value")
    options = parser.parse_args()
    facts = geometry(layers=24).to_dict()
    facts |= {name: yaml.safe_load(value) for name, value in (word.split("=", 1) for word in options.changes)}
    facts.pop("layer_types", None)  # follows from the number of layers
    write(options.folder, GptOssConfig(**facts))
    print(f"{options.folder}: {sum(file.stat().st_size for file in options.folder.iterdir()) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
