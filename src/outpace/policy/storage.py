"""How gpt-oss's parts are kept, by the card that they must fit; needs no torch, so that plans need none."""

from dataclasses import dataclass
from typing import Literal

SCORES_AT_ONCE = 2**24
"""Attention scores of gpt-oss that are held at a time, in float32: 64 MB; but those of one query head at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """How what is not an expert is kept; experts are always packed."""

    attention: Literal["full", "int8", "mxfp4"] = "full"
    head: Literal["full", "int8"] = "full"
    embedding: Literal["device", "host"] = "device"

    @classmethod
    def within(cls, memory_GB: float | None) -> "Storage":
        """The most exact storage that leaves room to train in that much GPU memory; None: no limit."""
        if memory_GB is None or memory_GB >= 20:
            return cls()
        if memory_GB >= 14:
            return cls(attention="int8", head="int8", embedding="host")
        return cls(attention="mxfp4", head="int8", embedding="host")

    @property
    def is_exact(self) -> bool:
        """Whether nothing but the experts is rounded or moved."""
        return self == Storage()

    @property
    def tokens_at_once(self) -> int | None:
        """Most tokens whose experts are computed together in training; None, for all, unless memory is short."""
        return 1280 if self.attention == "mxfp4" else None

    def describe(self) -> str:
        """One line for a run's record."""
        return f"experts mxfp4, attention {self.attention}, head {self.head}, embedding on {self.embedding}"
