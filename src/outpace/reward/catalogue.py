"""Every reward that a recipe can name; a class's fields are its options.

Rewards of your own need no entry here: a recipe gives them by dotted path (`user_code`).
"""

from collections.abc import Mapping
from typing import Any

from outpace.errors import RewardError
from outpace.reward.article import ArticleAccuracy, ArticleSecurity, ArticleSpeed
from outpace.reward.base import nearest
from outpace.reward.executed import Accuracy, Outcomes, Security, Speed, Syntax
from outpace.reward.judge import Judge
from outpace.reward.shape import AnswerFormat, Fence, LengthTokens, LengthWords, Overlong, ProseFormat
from outpace.reward.thinking import ThinkingDepth, ThinkingLength
from outpace.reward.variety import GroupDiversity, Repetition

EXECUTED = (Syntax, Security, Accuracy, Speed, Outcomes)
ARTICLE = (ArticleSecurity, ArticleAccuracy, ArticleSpeed)
THINKING = (ThinkingLength, ThinkingDepth)
SHAPE = (Fence, AnswerFormat, ProseFormat, LengthWords, LengthTokens, Overlong)
VARIETY = (Repetition, GroupDiversity)

CATALOGUE: Mapping[str, type[Any]] = {
    cls.name: cls for cls in (*EXECUTED, *ARTICLE, *THINKING, *SHAPE, *VARIETY, Judge)
}


def lookup(name: str) -> type[Any]:
    """The class of that name; raises RewardError that names the nearest ones."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    raise RewardError(
        f"There is no reward named {name!r}{nearest(name, CATALOGUE)}; "
        f"the names are {', '.join(known())}, and code of your own is given as package.module.function."
    )


def known() -> tuple[str, ...]:
    """The names of all rewards, sorted."""
    return tuple(sorted(CATALOGUE))
