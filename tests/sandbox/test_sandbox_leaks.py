"""Nothing gets out of a child at the full level, and each layer is what stops it."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_leaks import KILLED_CALLS, LEAKS, PRELUDE, Leak

from outpace.sandbox import Layer, ProcessSandbox, SandboxSettings
from outpace.schema import Limits

IS_X86 = os.uname().machine == "x86_64"


@pytest.fixture(autouse=True, scope="module")
def _secret() -> Iterator[None]:
    """In the environment while sandboxes start, as a token of the user's would be."""
    os.environ["OUTPACE_LEAK_TEST"] = "secret"
    yield
    del os.environ["OUTPACE_LEAK_TEST"]


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Iterator[tuple[int, int, str]]:
    """A process, a listening port and a world-writable folder of the host."""
    folder = tmp_path_factory.mktemp("host")
    folder.chmod(0o777)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield os.getpid(), server.getsockname()[1], str(folder)


def got_through(run, sandbox, leak: Leak, target) -> bool:
    return run(sandbox, leak.source, *target).call.value is True


@pytest.mark.skipif(not IS_X86, reason="the system call numbers in these attacks are x86-64's")
@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_nothing_gets_out_at_the_full_level(run, sandbox, leak, target):
    assert not got_through(run, sandbox, leak, target)
    assert not list(Path(target[2]).iterdir())


@pytest.mark.skipif(not IS_X86, reason="the system call numbers in these attacks are x86-64's")
@pytest.mark.parametrize("leak", LEAKS, ids=lambda leak: leak.name)
def test_the_same_act_gets_through_when_its_layers_are_off(run, start, leak, target):
    if leak.only_root and os.geteuid() != 0:
        pytest.skip("needs a root caller")
    if leak.name == "writes shared memory files" and not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm here")
    assert got_through(run, start(*leak.stopped_by), leak, target)
    for planted in (Path("/dev/shm/outpace-leak-test"), Path(target[2], "planted")):
        planted.unlink(missing_ok=True)


@pytest.mark.skipif(not IS_X86, reason="the system call numbers in these attacks are x86-64's")
@pytest.mark.parametrize(
    ("leak", "layer"),
    [(leak, layer) for leak in LEAKS for layer in sorted(leak.stopped_by) if len(leak.stopped_by) > 1],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_each_of_its_layers_stops_it_alone(run, start, leak, layer, target):
    if (leak.only_root or layer is Layer.PRIVILEGES) and os.geteuid() != 0:
        pytest.skip("needs a root caller")
    assert not got_through(run, start(*(leak.stopped_by - {layer})), leak, target)


@pytest.mark.skipif(not IS_X86, reason="the numbers are x86-64's")
@pytest.mark.parametrize("name", sorted(KILLED_CALLS))
def test_a_call_that_no_computing_program_makes_ends_the_child(run, sandbox, name):
    source = f"{PRELUDE}\ndef f():\n    kernel.syscall({KILLED_CALLS[name]}, 0, 0, 0, 0, 0)\n    return True\n"
    assert run(sandbox, source).verdict == ("forbidden", "syscall")


def test_a_child_holds_only_the_sink_and_its_channel(run, sandbox):
    source = """
import os
def f():
    found = []
    for descriptor in range(256):
        try:
            os.lseek(descriptor, 0, os.SEEK_CUR)
            found.append(descriptor)
        except OSError as error:
            if error.errno != 9:  # anything but "bad descriptor": it is there
                found.append(descriptor)
    return found
"""
    assert run(sandbox, source).call.value == [0, 1, 2, 3]


def test_a_child_learns_nothing_of_the_host_from_sys(run, sandbox):
    source = "import sys\ndef f(): return [sys.argv, sys.orig_argv, sys.path, 'ctypes' in sys.modules]"
    assert run(sandbox, source).call.value == [[""], [], [], False]


def test_a_child_can_write_into_the_sink_without_end_and_only_its_time_runs_out(run, sandbox):
    limits = Limits(cpu_s=0.3)
    result = run(sandbox, "def f():\n    while True:\n        print('x' * 100000)", limits=limits)
    assert result.verdict == ("timeout", "cpu_limit")


def test_a_daemon_of_a_weak_sandbox_dies_with_it():
    without = frozenset({Layer.SECCOMP, Layer.RLIMITS})
    with ProcessSandbox(SandboxSettings(without=without, allow_weak_isolation=True)) as weak:
        if Layer.NAMESPACES.value not in weak.isolation.layers:
            pytest.skip("only a pid namespace ends daemons of a sandbox without seccomp")
        source = """
import os, time
def f():
    if os.fork() == 0:
        os.setsid()
        while True:
            time.sleep(1)
    return True
"""
        instance = weak.open(source, "f", Limits())
        assert instance.call(()).value is True
        instance.close()
        users = _processes_of_sandboxes(weak)
        assert users
    assert not _alive(users)


def _processes_of_sandboxes(sandbox: ProcessSandbox) -> list[int]:
    """Every process below the fork server, as the host sees it."""
    found, todo = [], [sandbox._zygote.process.pid]
    while todo:
        pid = todo.pop()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found += [int(child) for child in children]
        todo += [int(child) for child in children]
    return found


def _alive(pids: list[int]) -> list[int]:
    listed = subprocess.run(
        ["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))], capture_output=True, text=True, check=False
    )
    return [line for line in listed.stdout.splitlines() if "Z" not in line]
