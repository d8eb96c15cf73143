import os

import pytest

from outpace.sandbox import ProcessSandbox, SandboxSettings


@pytest.fixture(scope="module")
def sandbox():
    """A real sandbox whose clock is exact: this thread and the children share one core while a module's tests run."""
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        with ProcessSandbox(SandboxSettings(core=core)) as opened:
            yield opened
    finally:
        os.sched_setaffinity(0, before)
