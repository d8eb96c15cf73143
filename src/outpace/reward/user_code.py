"""Rewards that users write, given by dotted path: `rewards: {my_pkg.my_reward: 0.5}`.

Two forms are accepted: ours, one positional argument (the group of `Sample`s), and TRL's, keywords
`(prompts, completions, **columns)`. A class is made first, with the entry's options; a function gets them as keywords.
An exception in user code never ends a training run: the group gets None, it is counted, and the first traceback is
logged. Before training there is no such mercy: `check` raises.
"""

import functools
import importlib
import inspect
import logging
import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from outpace.errors import RewardError
from outpace.reward.base import Value
from outpace.reward.loop_thread import LoopThread
from outpace.reward.probe import probe_group
from outpace.schema import Sample

_log = logging.getLogger("outpace.reward")


def load_user_reward(path: str, options: Mapping[str, Any] | None = None) -> "UserReward":
    """Import `package.module.name` (or `package.module:name`) and check its signature; raises RewardError."""
    target = _import(path)
    options = dict(options or {})
    try:
        if inspect.isclass(target):
            target, options = target(**options), {}
    except Exception as error:
        raise RewardError(f"The reward class {path} could not be made: {type(error).__name__}: {error}.") from error
    return UserReward(path, target, options)


def _import(path: str) -> Any:
    module_name, _, attribute = path.replace(":", ".").rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise RewardError(
            f"The reward {path!r} cannot be imported ({error}); give package.module.function of an importable module."
        ) from error
    except Exception as error:
        raise RewardError(f"Importing {module_name} for a reward raised {type(error).__name__}: {error}.") from error
    if not hasattr(module, attribute):
        raise RewardError(f"The module {module_name} has no {attribute!r}; check the reward's dotted path.")
    return getattr(module, attribute)


class UserReward:
    """A user's callable behind our protocol; counts its failures and answers None for them."""

    def __init__(self, path: str, target: Any, options: Mapping[str, Any] | None = None) -> None:
        if not callable(target):
            raise RewardError(f"The reward {path} is not callable; give a function or a class with __call__.")
        self.name = path.replace(":", ".")
        self.failures = 0
        if options:
            _refuse_unless_options_fit(path, target, options)
            target = functools.partial(target, **options)
        self._call = self._adapt(path, target)
        self._loop = LoopThread(f"reward {self.name}")

    def __call__(self, group: Sequence[Sample]) -> list[Value]:
        """One value per sample; all None, and one more failure counted, when the user's code misbehaves."""
        graded = [sample for sample in group if sample.verdict is not None]
        if not graded:
            return [None] * len(group)
        try:
            values = iter(self.call_strictly(graded))
        except Exception:
            self.failures += 1
            if self.failures == 1:
                _log.error("The reward %s failed; its value is unknown.\n%s", self.name, traceback.format_exc())
            return [None] * len(group)
        return [None if sample.verdict is None else next(values) for sample in group]

    def call_strictly(self, group: Sequence[Sample]) -> list[Value]:
        """The user's values as they are; raises RewardError on a wrong length or type, and what the code raises."""
        values = self._call(group)
        if inspect.isawaitable(values):
            values = self._loop.submit(_result_of(values)).result()
        try:
            values = list(values)
        except TypeError as error:
            raise RewardError(f"The reward {self.name} must return a list, got {type(values).__name__}.") from error
        if len(values) != len(group):
            raise RewardError(
                f"The reward {self.name} returned {len(values)} values for {len(group)} samples; "
                "it must return exactly one per sample."
            )
        return [self._number(value) for value in values]

    def check(self) -> None:
        """Call the code once on made-up samples; raises RewardError when it fails, and warns when it pays the worst."""
        group = probe_group()
        try:
            values = self.call_strictly(group)
        except RewardError:
            raise
        except Exception as error:
            raise RewardError(
                f"The reward {self.name} raised {type(error).__name__} on a probe call: {error}."
            ) from error
        if values[0] is not None and values[-1] is not None and values[0] < values[-1]:
            _log.warning(
                "The reward %s gives %g to a correct program and %g to a refusal; more must be better: check its sign.",
                *(self.name, values[0], values[-1]),
            )

    def close(self) -> None:
        """End the thread that an async reward runs in."""
        self._loop.close()

    def metrics(self) -> Mapping[str, float]:
        """How often the code failed so far."""
        return {"failures": float(self.failures)}

    def _number(self, value: Any) -> Value:
        if value is None:
            return None
        try:
            number = float(value)
        except (TypeError, ValueError) as error:
            raise RewardError(f"The reward {self.name} returned {value!r}; give a number or None.") from error
        if not math.isfinite(number):
            raise RewardError(f"The reward {self.name} returned {number}; give a finite number, or None for unknown.")
        return number

    @staticmethod
    def _adapt(path: str, target: Callable[..., Any]) -> Callable[[Sequence[Sample]], Any]:
        try:
            signature = inspect.signature(target)
        except (TypeError, ValueError) as error:
            raise RewardError(f"The signature of the reward {path} cannot be read; wrap it in a function.") from error
        if "completions" in signature.parameters:
            _refuse_unless(path, signature, **_columns([], signature))
            return lambda group: target(**_columns(group, signature))
        _refuse_unless(path, signature, ())
        return target


def _refuse_unless_options_fit(path: str, target: Callable[..., Any], options: Mapping[str, Any]) -> None:
    try:
        inspect.signature(target).bind_partial(**options)
    except (TypeError, ValueError) as error:
        raise RewardError(f"The reward {path} does not take the options {', '.join(options)} ({error}).") from error


def _refuse_unless(path: str, signature: inspect.Signature, *args: Any, **kwargs: Any) -> None:
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise RewardError(
            f"The reward {path}{signature} cannot be called ({error}); it must take one group of samples, "
            "or TRL's keywords (prompts, completions, **columns)."
        ) from error


def _columns(group: Sequence[Sample], signature: inspect.Signature) -> dict[str, list[Any]]:
    """What TRL would pass for our data sets, and the facts beside it; only what the callable takes."""
    columns: dict[str, list[Any]] = {
        "prompts": [list(sample.task.prompt) for sample in group],
        "completions": [[{"role": "assistant", "content": sample.completion}] for sample in group],
        "completion_ids": [None if s.completion_ids is None else list(s.completion_ids) for s in group],
        "task_id": [sample.task.id for sample in group],
        "verdict": [sample.verdict for sample in group],
        "finished": [sample.finished for sample in group],
    }
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values()):
        return columns
    return {name: column for name, column in columns.items() if name in signature.parameters}


async def _result_of(awaitable: Any) -> Any:
    return await awaitable
