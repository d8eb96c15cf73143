"""`--dry-run`: everything that can be checked without weights, and what the run would do."""

from rich.console import Console
from rich.text import Text

from outpace import reward
from outpace.config import Recipe, dump_recipe, plan_batches
from outpace.policy.locate import locate
from outpace.training.choice import choose_sampler
from outpace.training.environment import processes
from outpace.training.evaluations import load_task_sets
from outpace.training.rewards import doubt_about
from outpace.training.schedule import by_prompt


def preview(recipe: Recipe, console: Console) -> None:
    """Check recipe, tasks, rewards, batches and that the model is there; print the resolved recipe and what follows.

    Raises:
        UserError: what training would refuse; no weights are loaded and nothing is written.
    """
    plan = plan_batches(recipe, processes())
    sampler = choose_sampler(recipe)
    train, heldout = load_task_sets(recipe)
    by_prompt(train)
    locate(recipe.model)
    lines = [
        f"{len(train)} tasks to train on, {len(heldout)} held out",
        f"sampler {sampler.name}: {sampler.why}",
    ]
    if recipe.method in ("grpo", "rloo"):
        with reward.build(recipe.rewards) as rewards:
            doubt = doubt_about(rewards)
            lines += [f"warning: {doubt}"] if doubt else []
            lines.append("rewards " + ", ".join(f"{name} {weight:g}" for name, weight in rewards.weights(0).items()))
        lines.append(
            f"each generation: {plan.groups_per_generation} prompts x {recipe.num_generations} completions on "
            f"{plan.processes} process(es), {plan.updates_per_generation} update(s)"
        )
        lines.append(
            f"{recipe.max_steps} updates learn from {recipe.max_steps * plan.completions_per_update:,} completions of "
            f"up to {recipe.max_completion_length} tokens"
        )
    lines.append(_objective(recipe))
    console.print(Text(dump_recipe(recipe)), soft_wrap=True)
    console.print(Text("\n".join(lines)), soft_wrap=True)


def _objective(recipe: Recipe) -> str:
    if recipe.method != "grpo":
        return f"method {recipe.method}, beta {recipe.beta:g}"
    departures = recipe.departures()
    exact = f" except {', '.join(departures)}" if departures else ", exactly"
    name = (
        f"the textbook objective{exact}"
        if recipe.objective == "grpo"
        else f"TRL's {recipe.objective} with its settings"
    )
    return f"GRPO by {name}: epsilon {recipe.epsilon:g}, beta {recipe.beta:g}, entropy bonus 0"
