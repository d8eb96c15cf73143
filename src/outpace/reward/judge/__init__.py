"""An LLM's opinion as a reward: it may lower what executed code earned, and never raises it.

`settings` (what a recipe can set), `showing` (what the judge gets to see), `verdict` (reading its reply), `client` (the
network), `cache` (the disk), `judge` (the reward). Needs the extra `[judge]` and any OpenAI-compatible endpoint.
"""

from outpace.reward.judge.judge import Judge
from outpace.reward.judge.settings import JudgeSettings

__all__ = ["Judge", "JudgeSettings"]
