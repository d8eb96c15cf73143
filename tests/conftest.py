"""Guards around every test: the environment is as it was, and the suite leaves no process behind."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from outpace.training import prepare_environment

os.environ.setdefault("HF_HUB_OFFLINE", "1")
prepare_environment()
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(Path(tempfile.gettempdir()) / "outpace-tests-inductor"))


def children_of(pid: int) -> set[int]:
    """Direct children of a process, zombies included."""
    found = set()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found |= {int(child) for child in (task / "children").read_text().split()}
        except OSError:
            continue
    return found


@pytest.fixture(autouse=True)
def _environment_is_left_as_it_was() -> Iterator[None]:
    before, folder = dict(os.environ), Path.cwd()
    yield
    after = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    before.pop("PYTEST_CURRENT_TEST", None)
    assert after == before, "the test changed the environment: use monkeypatch"
    assert Path.cwd() == folder, "the test changed the working folder: use monkeypatch.chdir"


@pytest.fixture(autouse=True, scope="session")
def _no_process_is_left_behind() -> Iterator[None]:
    before = children_of(os.getpid())
    yield
    left = children_of(os.getpid()) - before
    assert not left, f"these child processes outlived the tests: {sorted(left)}"
