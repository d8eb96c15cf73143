"""What a recipe can say about a judge, and where its key comes from.

The key itself is never a setting: a recipe names the environment variable that holds it, and no message prints it.
"""

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

RUBRIC = (
    "How well is the program written? Consider whether the algorithm suits the problem, whether every part of it is "
    "needed, and whether it handles general inputs instead of special cases made up to pass tests."
)

_PLACEHOLDER = re.compile(
    r"|none|null|empty|todo|test|dummy|changeme|secret|token|(sk-)?(x+|\.+|\*+|0+)"
    r"|.*(your|placeholder|replace|change.?me|insert|<|>|\.\.\.|…|api.?key.?here|\$\{).*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(kw_only=True)
class JudgeSettings:
    """Options of the reward `judge`; `base_url` and `model` have no default.

    A server on this machine or in a private network needs no key, unless `api_key_env` names one.
    """

    base_url: str
    """For example `http://127.0.0.1:8000/v1`."""
    model: str
    rubric: str = RUBRIC
    """What the marks from 0 to 10 are given for."""
    show: Literal["code", "answer"] = "code"
    """`code`: the program without comments and texts. `answer`: also the whole answer; the lower mark counts."""
    among: Literal["syntax", "security", "accuracy"] = "accuracy"
    """Only samples that passed this stage are shown; the others get the lowest value without being asked about."""
    api_key_env: str | None = None
    concurrency: int = 8
    connect_timeout_s: float = 5.0
    timeout_s: float = 60.0
    """For one attempt, from the request to the last byte of the reply."""
    attempts: int = 4
    backoff_s: float = 0.5
    """Wait before the second attempt; doubles each time, with jitter."""
    max_wait_s: float = 30.0
    """Longest single wait, also when the server asks for more."""
    rest_s: float = 30.0
    """How long a judge that failed again and again is left alone."""
    max_tokens: int = 512
    max_chars: int = 20_000
    """Longer texts are not shown and get the lowest value."""
    temperature: float = 0.0
    cache_dir: str | None = None
    """Folder that keeps opinions between runs; None: no cache."""
    usd_per_million_in: float = 0.0
    usd_per_million_out: float = 0.0

    def __post_init__(self) -> None:
        url = urlsplit(self.base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("judge.base_url must be an http(s) address such as http://127.0.0.1:8000/v1")
        if url.username or url.password:
            raise ValueError("judge.base_url must not hold a name or password; put the key in an environment variable")
        for name in ("model", "rubric"):
            if not getattr(self, name).strip():
                raise ValueError(f"judge.{name} must not be empty")
        for name in ("concurrency", "connect_timeout_s", "timeout_s", "attempts", "max_tokens", "max_chars"):
            if not getattr(self, name) > 0:
                raise ValueError(f"judge.{name} must be above 0, got {getattr(self, name)}")

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine or in a private network."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_private
        except ValueError:
            return host == "localhost" or "." not in host or host.endswith((".local", ".internal"))

    def api_key(self) -> str:
        """The key from the environment; raises ValueError, without printing it, when it is unset or a placeholder."""
        variable = self.api_key_env or ("" if self.is_local else "OPENAI_API_KEY")
        if not variable:
            return "not-needed"
        key = os.environ.get(variable, "").strip()
        if not key:
            raise ValueError(
                f"the judge's key is missing: set the environment variable {variable}, or name another in api_key_env"
            )
        if _PLACEHOLDER.fullmatch(key):
            raise ValueError(f"the environment variable {variable} holds a placeholder, not a key for the judge")
        return key
