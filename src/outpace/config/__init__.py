"""Recipes: what a run is told to do, read from flat YAML and checked before anything heavy is loaded.

Covers the keys, their types and the arithmetic between them. Does not know whether a task, a reward or a model
exists: the stages that own those names say so.
"""

from outpace.config.batches import BatchPlan, plan_batches
from outpace.config.loading import dump_recipe, load_recipe, shipped_recipes
from outpace.config.recipe import Recipe

__all__ = ["BatchPlan", "Recipe", "dump_recipe", "load_recipe", "plan_batches", "shipped_recipes"]
