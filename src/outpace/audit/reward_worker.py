"""Program of the process in which a foreign reward runs: JSON lines in on stdin, out on a descriptor of its own.

The reward may execute completions in this very process, so it may hang, die, or come out changed; its parent
(`reward_process`) expects all three.
"""

import contextlib
import json
import os
import pickle
import resource
from typing import Any

from outpace.audit.reward_call import RewardFunction, call_reward, load_reward

_MOST_BYTES = 8 * 2**30
"""Bound on the memory of the reward's process, or a quarter of the machine's if that is less: enough for a small judge,
too little to make the machine swap."""


def main(reply_fd: int) -> None:
    """Answer requests until stdin ends. The first line is the pickled reward; its reply says whether it was loaded."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):
        bound = min(_MOST_BYTES, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4)
        resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with os.fdopen(reply_fd, "w", encoding="utf-8") as replies:
        reward = _load(requests.readline(), replies)
        for line in requests if reward is not None else ():
            _reply(replies, _answer(reward, json.loads(line)))


def _load(packed_reward: str, replies: Any) -> RewardFunction | None:
    try:
        loaded = pickle.loads(bytes.fromhex(packed_reward))  # noqa: S301 - made by our own parent
        reward = load_reward(loaded) if isinstance(loaded, str) else loaded
    except Exception as error:
        _reply(replies, {"error": str(error)})
        return None
    _reply(replies, {})
    return reward


def _answer(reward: RewardFunction | None, request: dict[str, Any]) -> dict[str, Any]:
    assert reward is not None
    try:
        values = call_reward(reward, request["prompt"], request["completions"], request["columns"], request["style"])
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"values": values}


def _reply(replies: Any, value: dict[str, Any]) -> None:
    replies.write(json.dumps(value) + "\n")
    replies.flush()
