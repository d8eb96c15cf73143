"""Reading a judge's reply: repair what is clear, refuse the rest.

Repaired: text or a code fence around the JSON object, and a whole number written as text. Refused, never guessed: no
object, a missing field, a score out of range, or the wrong number, which is what a grade copied from a candidate has.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from outpace.reward.judge.showing import HIGHEST

_LONGEST_REPLY = 20_000


class UnusableReply(ValueError):
    """A reply that holds no opinion; the message says why, in a form that can be sent back to the judge."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A judge's marks for one program."""

    score: int
    """0 (worst) to 10 (best)."""
    reason: str


def read(reply: str, number: str) -> Opinion:
    """The opinion in a reply that repeats `number`; raises UnusableReply."""
    found = [value for value in _objects(reply[:_LONGEST_REPLY]) if value.get("number") == number]
    if not found:
        raise UnusableReply(f'there is no JSON object with "number": "{number}"')
    last = found[-1]
    score = _whole(last.get("score"))
    if score is None or not 0 <= score <= HIGHEST:
        raise UnusableReply(f'"score" must be a whole number from 0 to {HIGHEST}')
    return Opinion(score, str(last.get("reason", ""))[:1000])


def _objects(text: str) -> list[dict[str, Any]]:
    """All JSON objects in the text that do not lie within another one."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            found.append(value)
        position = text.find("{", end)
    return found


def _whole(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,3}\s*", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
