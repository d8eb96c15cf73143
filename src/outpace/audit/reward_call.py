"""Find a TRL-style reward by name and call it as TRL does.

TRL calls `reward(prompts=..., completions=..., completion_ids=..., **columns)` and takes a list of numbers or None.
Covers plain and async functions, conversational and plain completions. Does not protect anybody from the function.
"""

import asyncio
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from outpace.errors import RewardError

RewardFunction = Callable[..., Any]

STYLES = ("messages", "text")
"""Completions as lists of chat messages, or as plain text; TRL uses the style of the data set."""


def load_reward(spec: str) -> RewardFunction:
    """The callable named `package.module:function` or `path/to/file.py:function`; raises RewardError."""
    place, _, name = spec.rpartition(":")
    if not place or not name:
        raise RewardError(f"the reward {spec!r} is not of the form package.module:function; write it with a colon")
    module = _load_file(Path(place)) if place.endswith(".py") else _import(place)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise RewardError(f"the module {place} has no function {name!r}; check the name behind the colon")
    return found  # type: ignore[no-any-return]


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise RewardError(f"the module {name} of the reward cannot be imported: {error!r}") from error


def _load_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"outpace_audited_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise RewardError(f"there is no reward file {path}; give a Python file that can be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RewardError(f"the reward file {path} cannot be loaded: {error!r}") from error
    return module


def call_reward(
    reward: RewardFunction,
    prompt: Sequence[Mapping[str, str]],
    completions_G: Sequence[str],
    columns: Mapping[str, Any],
    style: str,
) -> list[float | None]:
    """Score the completions of one prompt, `(G,)`; raises whatever the reward raises, RewardError for a bad result.

    Args:
        columns: values of the data set's columns for this prompt, repeated for each completion.
        style: one of `STYLES`.
    """
    count = len(completions_G)
    as_messages = [[{"role": "assistant", "content": text}] for text in completions_G]
    given: dict[str, Any] = {
        "prompts": [list(prompt) if style == "messages" else prompt[-1]["content"]] * count,
        "completions": as_messages if style == "messages" else list(completions_G),
        "completion_ids": [[ord(character) % 32000 for character in text] for text in completions_G],
        **{name: [value] * count for name, value in columns.items()},
    }
    result = reward(**_accepted(reward, given))
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    values = [None if value is None else float(value) for value in result]
    if len(values) != count:
        raise RewardError(f"the reward returned {len(values)} values for {count} completions; return one for each")
    return values


def _accepted(reward: RewardFunction, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the function takes by name; everything when it takes `**kwargs`, as TRL asks for."""
    try:
        parameters = inspect.signature(reward).parameters.values()
    except (TypeError, ValueError):
        return given
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return given
    return {name: value for name, value in given.items() if name in {parameter.name for parameter in parameters}}
