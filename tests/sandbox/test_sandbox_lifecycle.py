"""Nothing grows, nothing stays, and what is killed from outside is ours and not the candidate's."""

import ast
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import outpace
from outpace.errors import SandboxUnavailable
from outpace.sandbox import Layer, ProcessInstance, ProcessSandbox, SandboxSettings, detect
from outpace.schema import Limits

PACKAGE = Path(outpace.__file__).parent
MIXED = [
    "def f(): return 1",
    "def f(): return [[1.0] * 50] * 50",
    "def f(): raise ValueError",
    "def f(:",
    "import os\ndef f(): os.fork()",
    "import os\ndef f(): os._exit(1)",
    "def f(): return 'x' * 20_000_000",
    "import os\ndef f(): os.write(3, b'x' * 5000)",
]


def descriptors() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def children_inside(sandbox: ProcessSandbox) -> int:
    """Processes below the fork server, zombies included."""
    outside = sandbox._zygote.process.pid
    total, todo = 0, [outside]
    while todo:
        pid = todo.pop()
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        total += len(found)
        todo += map(int, found)
    return total


def test_descriptors_processes_and_memory_stay_flat_over_many_executions(run):
    with ProcessSandbox() as sandbox:
        for source in MIXED:
            run(sandbox, source)
        before, living = descriptors(), children_inside(sandbox)
        pages = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(160):
            run(sandbox, MIXED[number % len(MIXED)])
        assert descriptors() == before
        assert children_inside(sandbox) == living
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - pages < 20 * 1024


def test_starting_and_closing_sandboxes_leaves_nothing():
    ProcessSandbox().close()
    before = descriptors()
    for _ in range(3):
        ProcessSandbox().close()
    assert descriptors() == before


def test_a_handle_that_is_dropped_ends_and_reaps_its_child(sandbox):
    living = children_inside(sandbox)
    sandbox.open("def f(): return 1", "f", Limits())  # never closed
    with sandbox.open("def f(): return 1", "f", Limits()) as instance:
        assert instance.call(()).value == 1
    assert children_inside(sandbox) == living


def test_a_child_that_is_killed_from_outside_is_our_failure(sandbox):
    instance = sandbox.open("def f(): return 1", "f", Limits())
    os.kill(instance._pid, signal.SIGKILL)
    with pytest.raises(SandboxUnavailable, match="killed from outside"):
        instance.call(())
    assert instance.close() is None


@pytest.mark.parametrize("victim", ["the fork server", "the process that waits for it"])
def test_a_killed_fork_server_loses_the_calls_in_flight_and_is_replaced(victim):
    with ProcessSandbox() as sandbox:
        instance = sandbox.open("def f(): return 1", "f", Limits())
        outside = sandbox._zygote.process.pid
        inside = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()
        os.kill(int(inside[0]) if inside and victim == "the fork server" else outside, signal.SIGKILL)
        with pytest.raises(SandboxUnavailable):
            call_until_it_fails(instance)
        with sandbox.open("def f(): return 2", "f", Limits()) as after:
            assert after.call(()).value == 2


def test_a_stopped_fork_server_does_not_stop_us(monkeypatch):
    monkeypatch.setattr("outpace.sandbox.instance._START_S", 0.5)
    with ProcessSandbox() as sandbox:
        outside = sandbox._zygote.process.pid
        inside = Path(f"/proc/{outside}/task/{outside}/children").read_text().split()
        stopped = int(inside[0]) if inside else outside
        os.kill(stopped, signal.SIGSTOP)
        with sandbox.open("def f(): return 2", "f", Limits()) as after:
            assert after.call(()).value == 2


def call_until_it_fails(instance: ProcessInstance) -> None:
    """The kill takes a moment to arrive."""
    while True:
        result = instance.call(())
        assert result.failure is None, "our failure was blamed on the candidate"


def _use(sandbox: ProcessSandbox, queue) -> None:
    try:
        sandbox.open("def f(): return 1", "f", Limits())
    except SandboxUnavailable as error:
        queue.put(str(error))
    sandbox.close()


def test_a_fork_of_the_caller_may_not_use_or_end_its_sandbox(sandbox):
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_use, args=(sandbox, queue))
    process.start()
    process.join()
    assert "after a fork" in queue.get()
    queue.close()
    with sandbox.open("def f(): return 1", "f", Limits()) as instance:
        assert instance.call(()).value == 1


def test_a_caller_with_a_gigabyte_and_many_descriptors_is_not_copied(run):
    ballast = bytearray(2**30)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]
    try:
        with ProcessSandbox() as sandbox:
            result = run(sandbox, "def f(): return 1")
            assert result.call.value == 1
            assert result.usage.max_rss_bytes < 100 * 2**20
    finally:
        for descriptor in held:
            os.close(descriptor)
        del ballast


def test_code_that_runs_in_the_child_imports_the_standard_library_and_nothing_of_ours():
    inside = [PACKAGE / "sandbox" / name for name in ("child.py", "zygote.py", "memory.py")]
    for path in [*inside, *(PACKAGE / "sandbox" / "layers").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name.split(".")[0] for alias in node.names}
                assert names <= sys.stdlib_module_names, path
            if isinstance(node, ast.ImportFrom):
                siblings = {"child", "memory", "kernel", *(p.stem for p in (PACKAGE / "sandbox/layers").glob("*.py"))}
                ours = node.level == 1 and ({alias.name for alias in node.names} <= siblings or node.module == "layers")
                assert ours or str(node.module).split(".")[0] in sys.stdlib_module_names, path


def test_the_child_file_runs_by_itself_in_a_bare_interpreter():
    path = PACKAGE / "sandbox" / "child.py"
    code = f"import sys; sys.path.insert(0, {str(path.parent)!r}); import child; print(len(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60
    assert "outpace" not in done.stdout


PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from outpace.sandbox import ProcessSandbox
from outpace.schema import Limits
with ProcessSandbox() as sandbox:
    with sandbox.open("def f(x): return x + 1", "f", Limits()) as instance:
        value = instance.call((1,)).value
    with sandbox.open("def f(): return open('/etc/passwd').read()", "f", Limits()) as instance:
        stolen = instance.call(()).value
    print(json.dumps([value, stolen, sandbox.isolation.level, list(sandbox.isolation.missing)]))
"""


def _as_user(*command: str) -> list[str]:
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]


def _interpreter_for_everyone() -> str | None:
    for candidate in (sys.executable, "/usr/bin/python3"):
        probe = (
            f"import subprocess, sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import outpace; "
            "assert sys.version_info > (3, 11); subprocess.run([sys.executable, '-c', ''], check=True)"
        )
        if subprocess.run(_as_user(candidate, "-c", probe), capture_output=True, check=False, cwd="/").returncode == 0:
            return candidate
    return None


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to become somebody else")
def test_it_works_for_an_ordinary_user():
    interpreter = _interpreter_for_everyone()
    if interpreter is None:
        pytest.skip("no interpreter here can be run by an ordinary user")
    command = _as_user(interpreter, "-c", PROGRAM, str(PACKAGE.parent))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout.startswith('[2, null, "'), done.stderr
    assert '"full"' in done.stdout or '"strict"' in done.stdout


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare to build a container")
def test_it_works_in_a_container_that_grants_no_namespaces():
    script = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$0" -c "$1" "$2"'
    command = ["unshare", "-Ur", "sh", "-c", script, sys.executable, PROGRAM, str(PACKAGE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "max_user_namespaces" in done.stderr:
        pytest.skip("no container can be built here")
    assert done.stdout == '[2, null, "strict", ["namespaces", "privileges"]]\n', done.stderr


DOCKER_LIKE = """
import sys
sys.path.insert(0, sys.argv[1])
from outpace.sandbox.layers import kernel, privileges, seccomp
numbers = seccomp.call_numbers(kernel.ARCHITECTURE)
refused = {numbers[name]: seccomp._ACT_DENY for name in ("personality", "unshare", "io_uring_setup", "keyctl", "bpf")}
privileges.seal()
seccomp.Filter(seccomp._assemble(refused, seccomp._ACT_ALLOW, kernel.ARCHITECTURE)).enforce()
"""


def test_it_works_where_a_container_refuses_namespaces_fixed_addresses_and_pinned_memory():
    command = [sys.executable, "-c", DOCKER_LIKE + PROGRAM, str(PACKAGE.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == '[2, null, "strict", ["aslr_off", "namespaces"]]\n', done.stderr


def test_detection_says_what_is_there_and_leaves_nothing():
    before = descriptors()
    found = detect(SandboxSettings(without=frozenset({Layer.NAMESPACES})))
    assert found.missing == {"namespaces": "switched off"}
    assert descriptors() == before


def test_platforms_without_the_engine_are_told_what_to_do(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="virtual machine or container"):
        ProcessSandbox()
