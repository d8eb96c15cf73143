"""What the configured trainer computes against the objective written out by hand."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from runs import TinyRun
from tiny import TASKS, RuleGrader, recipe, save_model

from outpace import reward
from outpace.config import plan_batches
from outpace.policy import load
from outpace.records import RunFolder
from outpace.schema import Outcome
from outpace.testing import verdict
from outpace.training.precision import choose_precision
from outpace.training.trainer import Parts, build_trainer
from outpace.training.trl_seam import quiet_libraries


def by_length(completion: str) -> Any:
    """Partial credit, so that groups hold several reward values."""
    return verdict(Outcome.WRONG, passed=len(completion) % 5, total=10)


def log_probs(model: Any, prompt_ids: list[int], completion_ids: list[int], temperature: float) -> torch.Tensor:
    """Log-probability of each completion token, one unpadded sequence at a time."""
    ids = torch.tensor([prompt_ids + completion_ids])
    logits = model(input_ids=ids).logits[0, len(prompt_ids) - 1 : -1] / temperature
    return torch.log_softmax(logits, dim=-1)[torch.arange(len(completion_ids)), torch.tensor(completion_ids)]


def textbook_loss(
    model: Any,
    reference: Any,
    old: list[torch.Tensor],
    rows: list[tuple[list[int], list[int]]],
    advantages: list[float],
    *,
    epsilon: float,
    beta: float,
    temperature: float,
) -> torch.Tensor:
    """Shao et al. (2024), eq. 3: the clipped surrogate less beta times the k3 estimate of KL, averaged by row."""
    losses = []
    for (prompt, completion), old_logp, advantage in zip(rows, old, advantages, strict=True):
        logp = log_probs(model, prompt, completion, temperature)
        with torch.no_grad():
            ref = log_probs(reference, prompt, completion, temperature)
        ratio = torch.exp(logp - old_logp)
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage)
        kl = torch.exp(ref - logp) - (ref - logp) - 1
        losses.append(-(surrogate - beta * kl).mean())
    return torch.stack(losses).mean()


def hand_advantages(rewards: list[float], group: int) -> list[float]:
    result: list[float] = []
    for start in range(0, len(rewards), group):
        values = torch.tensor(rewards[start : start + group], dtype=torch.float64)
        result += ((values - values.mean()) / (values.std(correction=1) + 1e-4)).tolist()
    return result


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_two_updates_on_one_generation_follow_the_textbook_objective(tmp_path: Path, temperature: float) -> None:
    # pad and end token are the same here: a mask built from ids would lose the end token and show up as a difference
    model_folder = save_model(tmp_path / "model", pad_token_id=1)
    lr, beta, epsilon, group = 0.5, 0.1, 0.02, 4
    plan_recipe = recipe(
        model_folder, tmp_path, optim="sgd", learning_rate=lr, lr_scheduler_type="constant", max_grad_norm=0.0,
        beta=beta, epsilon=epsilon, num_generations=group, num_iterations=2, max_steps=2, save_steps=2,
        temperature=temperature, rewards={"accuracy": {"weight": 2.0, "partial": 1.0}},
    )  # fmt: skip
    policy = load(str(model_folder), dtype="float32")
    policy.tokenizer.pad_token = policy.tokenizer.eos_token
    start = copy.deepcopy(policy.model)
    rewards = reward.build(plan_recipe.rewards)
    losses: list[float] = []
    parts = Parts(
        recipe=plan_recipe, run=RunFolder.create(tmp_path, "r"), tasks=TASKS, policy=policy,
        grader=RuleGrader(by_length), rewards=rewards, plan=plan_batches(plan_recipe),
        precision=choose_precision(plan_recipe), sampler="group",
        interrupts=SimpleNamespace(requested=None, begin_writing=lambda: None, end_writing=lambda: None),  # type: ignore[arg-type]
        record=lambda step, figures: losses.append(figures["loss"]),
        warn=lambda text: None,
    )  # fmt: skip
    with quiet_libraries():
        trainer = build_trainer(parts)
        drawn: list[dict[str, Any]] = []
        rollout = trainer.rollout_func
        trainer.rollout_func = lambda prompts, own: drawn.append(rollout(prompts, own)) or drawn[-1]
        trainer.train()

    assert len(drawn) == 1
    rows = list(zip(drawn[0]["prompt_ids"], drawn[0]["completion_ids"], strict=True))
    totals = [row["reward"] for row in parts.run.samples(1)]
    assert len(set(totals)) > 2
    assert any(ids[-1] == 1 for _, ids in rows)
    assert len({len(ids) for _, ids in rows}) > 1
    advantages = hand_advantages(totals, group)
    model, reference = copy.deepcopy(start), start
    with torch.no_grad():
        old = [log_probs(model, prompt, ids, temperature) for prompt, ids in rows]
    by_hand = []
    for _ in range(2):
        loss = textbook_loss(
            model, reference, old, rows, advantages, epsilon=epsilon, beta=beta, temperature=temperature
        )
        by_hand.append(float(loss.detach()))
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(lr * parameter.grad)
    assert losses == pytest.approx(by_hand, abs=1e-5)
    trained = dict(trainer.model.named_parameters())
    moved = 0.0
    for (name, expected), initial in zip(model.named_parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(trained[name], expected, atol=1e-5, rtol=0)
        moved = max(moved, float((expected - initial).abs().max().detach()))
    assert moved > 1e-3


@pytest.mark.parametrize("method", ["grpo", "rloo"])
def test_the_mean_reward_rises(model_folder: Path, tmp_path: Path, method: str) -> None:
    run = TinyRun(model_folder, tmp_path, method=method, max_steps=25, save_steps=25, per_device_train_batch_size=24)
    run.train()
    shares = [record["pass_rate"] for record in run.figures()]
    assert sum(shares[-5:]) / 5 > sum(shares[:5]) / 5 + 0.2
