"""The reward `judge`: asks, reads, remembers, and answers None where it got no opinion."""

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import ClassVar

from outpace.errors import JudgeUnavailable
from outpace.reward.base import Value, passes
from outpace.reward.judge import showing
from outpace.reward.judge.cache import OpinionCache, key_of
from outpace.reward.judge.client import JudgeClient, Reply
from outpace.reward.judge.settings import JudgeSettings
from outpace.reward.judge.verdict import Opinion, UnusableReply, read
from outpace.reward.loop_thread import LoopThread
from outpace.reward.reading import answer_of
from outpace.schema import Sample, Task

_log = logging.getLogger("outpace.reward")

LOWEST = -1.0


@dataclass(kw_only=True, eq=False)
class Judge(JudgeSettings):
    """An LLM's marks, mapped to -1.0 (worst) to 0.0 (best): a judge takes away, it never adds.

    So text that wins a judge over cannot lift a program above what its execution earned, and a program that did not
    pass the stage `among` gets -1.0 without a question. No opinion (no answer in time, an unusable reply, an outage) is
    None. The same question is asked once at a time, and with `cache_dir` once at all.
    """

    name: ClassVar[str] = "judge"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client = JudgeClient(self)
        self._cache = None if self.cache_dir is None else OpinionCache(self.cache_dir)
        self._loop = LoopThread("outpace judge")
        self._lock = threading.Lock()
        self._asked: dict[str, Future[Opinion]] = {}
        self._figures: Counter[str] = Counter()
        self._reported = False

    def __call__(self, group: Sequence[Sample]) -> list[Value]:
        """One value per sample, -1.0 to 0.0, or None."""
        questions = [self._questions(sample) for sample in group]
        begun = [self._begin(sample.task, texts) for sample, texts in zip(group, questions, strict=True)]
        values = [
            None if sample.verdict is None else self._value(answers)
            for sample, answers in zip(group, begun, strict=True)
        ]
        with self._lock:
            for key in {key for texts in questions for key in texts}:
                self._asked.pop(key, None)
        return values

    def prefetch(self, samples: Sequence[Sample]) -> None:
        """Start asking about the samples, and return at once."""
        for sample in samples:
            self._begin(sample.task, self._questions(sample))

    def check(self) -> None:
        """Ask the server a word; raises RewardError or JudgeUnavailable when it does not answer."""
        self._loop.submit(self._client.check()).result()

    def close(self) -> None:
        """Give up open questions and close the connections."""
        self._loop.submit(self._client.close()).result()
        self._loop.close()

    def metrics(self) -> Mapping[str, float]:
        """Since the last call: opinions got of samples in question, failures, requests, cost and mean latency."""
        with self._lock:
            counts, self._figures = self._figures, Counter()
        figures = {key: float(counts[key]) for key in ("in_question", "judged", "failures", "requests", "cache_hits")}
        figures |= {key: float(counts[key]) for key in ("tokens_in", "tokens_out")}
        figures["usd"] = (
            counts["tokens_in"] * self.usd_per_million_in + counts["tokens_out"] * self.usd_per_million_out
        ) / 1e6
        if counts["in_question"]:
            figures["judged_share"] = counts["judged"] / counts["in_question"]
        if counts["requests"]:
            figures["latency_s"] = counts["latency_us"] / 1e6 / counts["requests"]
        return figures

    def _questions(self, sample: Sample) -> dict[str, str]:
        """What to show, by key; empty for a sample that is not to be judged or that cannot be shown."""
        if sample.verdict is None or not passes(sample, self.among) or sample.verdict.candidate is None:
            return {}
        shown = [showing.bare_program(sample.verdict.candidate.source)]
        if self.show == "answer":
            shown.append(answer_of(sample))
        if any(text is None or len(text) > self.max_chars for text in shown):
            return {}
        return {self._key(sample.task, text): text for text in shown if text is not None}

    def _begin(self, task: Task, questions: Mapping[str, str]) -> list[Future[Opinion]]:
        with self._lock:
            for key, shown in questions.items():
                if key not in self._asked:
                    self._asked[key] = self._loop.submit(self._opinion(task, shown, key))
            return [self._asked[key] for key in questions]

    def _key(self, task: Task, shown: str) -> str:
        return key_of(
            base_url=self.base_url,
            model=self.model,
            rubric=self.rubric,
            temperature=self.temperature,
            prompt=[dict(message) for message in task.prompt],
            shown=shown,
        )

    def _value(self, answers: Sequence[Future[Opinion]]) -> Value:
        if not answers:
            return LOWEST
        self._count("in_question")
        try:
            scores = [answer.result().score for answer in answers]
        except (JudgeUnavailable, UnusableReply, CancelledError) as error:
            self._count("failures")
            if not self._reported:
                self._reported = True
                _log.error("The judge gave no opinion; the reward is unknown for such samples: %s", error)
            return None
        self._count("judged")
        return LOWEST + min(scores) / showing.HIGHEST

    async def _opinion(self, task: Task, shown: str, key: str) -> Opinion:
        kept = self._cache.get(key) if self._cache else None
        if kept is not None:
            self._count("cache_hits")
            return kept
        number = secrets.token_hex(8)
        chat = showing.messages(task, self.rubric, shown, number)
        schema = showing.schema(number)
        reply = await self._ask(chat, schema)
        try:
            opinion = read(reply.text, number)
        except UnusableReply as error:
            complaint = f"Your reply cannot be used: {error}. Reply again with the JSON object and nothing else."
            said = {"role": "assistant", "content": reply.text[:2000]}
            reply = await self._ask([*chat, said, {"role": "user", "content": complaint}], schema)
            opinion = read(reply.text, number)
        if self._cache:
            self._cache.put(key, opinion)
        return opinion

    async def _ask(self, chat: Sequence[dict[str, str]], schema: dict[str, object]) -> Reply:
        self._count("requests")
        reply = await self._client.ask(chat, schema)
        self._count("tokens_in", reply.tokens_in)
        self._count("tokens_out", reply.tokens_out)
        self._count("latency_us", int(reply.latency_s * 1e6))
        return reply

    def _count(self, figure: str, by: int = 1) -> None:
        with self._lock:
            self._figures[figure] += by
