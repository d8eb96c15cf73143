"""The network side of a judge: one chat completion, with limits, retries and rate limits.

Every failure ends as JudgeUnavailable within a bounded time; no message holds the key. Nothing is known here about
rubrics, programs or marks.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from outpace.errors import JudgeUnavailable, RewardError
from outpace.reward.judge.settings import JudgeSettings

_RETRIED = (408, 409, 425, 429)
_FORMATS = ("json_schema", "json_object", "text")
"""What the server is asked to hold the reply to; it falls back to the next when the server refuses."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer and what it took."""

    text: str
    tokens_in: int
    tokens_out: int
    latency_s: float


class JudgeClient:
    """Talks to one endpoint; its coroutines belong to the loop in which the first of them runs."""

    def __init__(self, settings: JudgeSettings) -> None:
        try:
            import openai
        except ImportError as error:
            raise RewardError("The judge needs the openai package: pip install 'outpace[judge]'.") from error
        self._settings = settings
        self._openai = openai
        self._malformed = (openai.OpenAIError, ValueError, TypeError, AttributeError, IndexError)
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=settings.api_key(),
            max_retries=0,
            timeout=openai.Timeout(settings.timeout_s, connect=settings.connect_timeout_s),
        )
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._format = 0
        self._paused_until = 0.0
        self._failures_in_a_row = 0
        self._down_until = 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def ask(self, messages: Sequence[dict[str, str]], schema: dict[str, Any]) -> Reply:
        """One reply, after as many attempts as the settings allow; raises JudgeUnavailable.

        When as many questions in a row as may be open at once went unanswered, the judge is left alone for `rest_s` and
        questions fail at once, so that a dead judge does not stop a training run.
        """
        async with self._slots:
            if time.monotonic() < self._down_until:
                raise JudgeUnavailable("The judge is left alone for a while after failing again and again.")
            try:
                reply = await self._with_retries(messages, schema)
            except JudgeUnavailable:
                self._failures_in_a_row += 1
                if self._failures_in_a_row >= self._settings.concurrency:
                    self._down_until = time.monotonic() + self._settings.rest_s
                raise
            self._failures_in_a_row = 0
            return reply

    async def _with_retries(self, messages: Sequence[dict[str, str]], schema: dict[str, Any]) -> Reply:
        reason = ""
        for attempt in range(1, self._settings.attempts + 1):
            await asyncio.sleep(max(0.0, self._paused_until - time.monotonic()))
            wait_s = self._backoff(attempt)
            try:
                return await self._attempt(messages, schema)
            except self._openai.APIStatusError as error:
                if not self._may_retry(error):
                    raise JudgeUnavailable(f"The judge refused the request: HTTP {error.status_code}.") from None
                reason, wait_s = f"HTTP {error.status_code}", self._wait_after(error, wait_s)
            except (self._openai.APIConnectionError, TimeoutError) as error:
                reason = type(error).__name__
            except self._malformed as error:
                reason = f"a malformed answer ({type(error).__name__})"
            if attempt < self._settings.attempts:
                await asyncio.sleep(wait_s)
        raise JudgeUnavailable(f"The judge gave no answer in {self._settings.attempts} attempts: {reason}.")

    async def check(self) -> None:
        """One short question, once; raises RewardError for what a user can mend and JudgeUnavailable otherwise."""
        where = self._settings.base_url
        try:
            await self._attempt([{"role": "user", "content": "Say yes."}], None, max_tokens=1)
        except self._openai.APIStatusError as error:
            if error.status_code in (401, 403):
                raise RewardError(
                    f"The judge at {where} does not accept the key; check the variable it is in."
                ) from None
            if error.status_code in (400, 404, 422):
                raise RewardError(
                    f"The judge at {where} does not serve model {self._settings.model!r} "
                    f"(HTTP {error.status_code}); check base_url and model."
                ) from None
            raise JudgeUnavailable(f"The judge at {where} answered HTTP {error.status_code}.") from None
        except (self._openai.APIConnectionError, TimeoutError) as error:
            cause = error.__cause__ or error
            raise JudgeUnavailable(
                f"The judge at {where} does not answer ({type(cause).__name__}); start the server or check base_url."
            ) from None
        except self._malformed as error:
            raise JudgeUnavailable(
                f"What answers at {where} is not an OpenAI-compatible server ({type(error).__name__})."
            ) from None

    async def _attempt(
        self,
        messages: Sequence[dict[str, str]],
        schema: dict[str, Any] | None,
        *,
        max_tokens: int | None = None,
        form: int | None = None,
    ) -> Reply:
        """One request; when the server refuses the reply format, another one that asks for less."""
        started = time.monotonic()
        used = self._format if form is None else form
        options = {} if schema is None else _response_format(_FORMATS[used], schema)
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                answer = await self._client.chat.completions.create(
                    model=self._settings.model,
                    messages=list(messages),  # type: ignore[arg-type]
                    temperature=self._settings.temperature,
                    max_tokens=max_tokens or self._settings.max_tokens,
                    **options,
                )
        except self._openai.APIStatusError as error:
            if error.status_code not in (400, 422) or not options:
                raise
            return await self._attempt(messages, schema, max_tokens=max_tokens, form=used + 1)
        self._format = used
        usage = answer.usage
        return Reply(
            text=answer.choices[0].message.content or "",
            tokens_in=usage.prompt_tokens if usage else 0,
            tokens_out=usage.completion_tokens if usage else 0,
            latency_s=time.monotonic() - started,
        )

    @staticmethod
    def _may_retry(error: Any) -> bool:
        if getattr(error, "code", None) == "insufficient_quota":
            return False
        return error.status_code in _RETRIED or error.status_code >= 500

    def _backoff(self, attempt: int) -> float:
        wait_s: float = self._settings.backoff_s * 2 ** (attempt - 1) * random.uniform(0.5, 1.5)
        return min(wait_s, self._settings.max_wait_s)

    def _wait_after(self, error: Any, backoff_s: float) -> float:
        """How long to wait; a rate limit holds back all other requests too."""
        asked = _retry_after_s(error.response.headers.get("retry-after"))
        wait_s = backoff_s if asked is None else min(asked, self._settings.max_wait_s)
        if error.status_code == 429:
            self._paused_until = max(self._paused_until, time.monotonic() + wait_s)
        return wait_s


def _response_format(form: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The request's `response_format`; empty for plain text."""
    if form == "json_schema":
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "opinion", "schema": schema, "strict": True},
            }
        }
    return {"response_format": {"type": "json_object"}} if form == "json_object" else {}


def _retry_after_s(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date; None when there is none or it is odd."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
