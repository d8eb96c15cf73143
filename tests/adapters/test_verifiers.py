"""Against the real verifiers package; it does not install beside our own pins, so CI skips this file."""

import asyncio

import pytest

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed here")


def test_a_reply_is_scored_by_the_real_package_and_the_real_grader():
    from outpace.adapters.verifiers import OutpaceConfig, OutpaceTaskset, close

    (task,) = OutpaceTaskset(OutpaceConfig(id="outpace", tasks="sequences/prefix_sums"))
    reply = "```python\nfrom itertools import accumulate\n\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n```"
    totals = []
    for text in (reply, "no idea"):
        trace = vf.Trace.model_construct(task=task.data, rewards={}, metrics={}, root_reply=text, nodes=[])
        asyncio.run(task.score(trace))
        totals.append(sum(reward.value for reward in trace.rewards.values()))
    close()
    assert totals[0] > 4.0
    assert totals[1] == 0.0
