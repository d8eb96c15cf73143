"""A plain TRL script whose rewards come from outpace: the completions are run, judged and timed.

    python examples/trl_plain.py --model starter --tasks linalg/matmul --steps 20

Everything but the two marked lines is TRL; RLOOTrainer takes the same functions.
"""

import argparse
import os

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when TRL is imported
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from trl import GRPOConfig, GRPOTrainer

from outpace import policy, tasks
from outpace.adapters.trl import dataset, reward_funcs
from outpace.grade import Grader


def main(argv: list[str] | None = None) -> list[dict[str, float]]:
    """Train, and return TRL's log: one entry per step, rewards by component in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="starter", help="starter, smollm2, a folder or a hub id")
    parser.add_argument("--tasks", default="linalg/matmul", help="what `outpace tasks list` shows, or a file")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--num-generations", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--output", default="runs/trl_plain")
    args = parser.parse_args(argv)

    loaded = policy.load(args.model)
    chosen = tasks.load(args.tasks)
    with Grader() as grader:
        functions = reward_funcs(  # <- outpace
            grader, chosen, tokenizer=loaded.tokenizer, num_generations=args.num_generations
        )
        trainer = GRPOTrainer(
            model=loaded.model,
            processing_class=loaded.tokenizer,
            reward_funcs=functions,
            train_dataset=dataset(chosen),  # <- outpace
            args=GRPOConfig(
                output_dir=args.output,
                max_steps=args.steps,
                num_generations=args.num_generations,
                per_device_train_batch_size=args.num_generations,
                max_completion_length=args.max_tokens,
                learning_rate=1e-4,
                bf16=torch.cuda.is_available() and torch.cuda.is_bf16_supported(),
                logging_steps=1,
                save_strategy="no",
                report_to=[],
            ),
        )
        trainer.train()
    return [entry for entry in trainer.state.log_history if "reward" in entry]


if __name__ == "__main__":
    for entry in main():
        parts = ", ".join(
            f"{k.split('/')[1]} {v:+.2f}" for k, v in entry.items() if k.startswith("rewards/") and k.endswith("/mean")
        )
        print(f"step {entry['step']}: reward {entry['reward']:+.3f} ({parts})")
