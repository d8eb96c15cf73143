"""From a completion to the one piece of source that every later stage sees.

Covers reasoning (harmony channels, `<think>`), CommonMark code blocks and the choice among several of them. Does not
judge, repair or re-indent the code: what is chosen is run as it stands.
"""

from outpace.extract.choice import extract
from outpace.extract.reasoning import split_reasoning
from outpace.extract.reasoning_ids import ReasoningMarkers, ReasoningSplit, split_reasoning_ids

__all__ = ["ReasoningMarkers", "ReasoningSplit", "extract", "split_reasoning", "split_reasoning_ids"]
