import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outpace.errors import RunFolderError
from outpace.records import RunFolder, append_jsonl, find_checkpoint, list_checkpoints, mark_complete, read_jsonl
from outpace.records.files import write_atomic, write_json


def test_records_come_back_in_order(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    for step in range(1, 4):
        run.append_metrics({"step": step, "reward": step / 2})
    assert [record["reward"] for record in run.metrics()] == [0.5, 1.0, 1.5]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(cut=st.integers(0, 60))
def test_a_file_cut_anywhere_keeps_its_whole_lines_and_takes_new_ones(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "metrics.jsonl"
    path.unlink(missing_ok=True)
    for step in range(3):
        append_jsonl(path, {"step": step, "x": "é"})
    path.write_bytes(path.read_bytes()[:cut])
    before = read_jsonl(path)
    append_jsonl(path, {"step": 99})
    after = read_jsonl(path)
    assert after[-1] == {"step": 99}
    assert [record["step"] for record in before] == list(range(len(before)))
    assert path.read_bytes().endswith(b"\n")
    # a line that was whole but lost its newline is cut, everything before it stays
    assert after[:-1] == before[: len(after) - 1]
    assert len(after) - 1 >= len(before) - 1


def test_nan_and_infinity_are_written_as_null_never_as_invalid_json(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": float("nan"), "b": [float("inf"), 1.5], "c": None})
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [None, 1.5], "c": None}


def test_rewinding_forgets_what_came_after_a_step_and_nothing_else(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    for step in range(1, 6):
        run.append_metrics({"step": step})
        run.write_samples(step, [{"step": step, "completion": "x"}])
    run.rewind(3)
    assert [record["step"] for record in run.metrics()] == [1, 2, 3]
    assert [row["step"] for row in run.samples()] == [1, 2, 3]
    assert run.samples(2) == [{"step": 2, "completion": "x"}]


def test_samples_written_twice_for_a_step_are_there_once(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    run.write_samples(1, [{"try": 1}])
    run.write_samples(1, [{"try": 2}])
    assert run.samples() == [{"try": 2}]


def test_a_full_disk_is_told_in_one_sentence_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path, "a")
    run.write_json("evaluation.json", {"kept": True})

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFolderError, match="No space left on device; free some space") as caught:
        run.write_json("evaluation.json", {"kept": False})
    assert "\n" not in str(caught.value)
    assert run.read_json("evaluation.json") == {"kept": True}
    assert sorted(path.name for path in run.path.iterdir()) == ["evaluation.json"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_metrics_on_a_full_device_are_told_in_one_sentence(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    (run.path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(RunFolderError, match="No space left"):
        run.append_metrics({"step": 1})


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(RunFolderError, match="a file stands where a folder is needed"):
        RunFolder.create(tmp_path / "runs", "a")
    with pytest.raises(RunFolderError):
        RunFolder.create(tmp_path, "runs")


def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs a file system that refuses even root")
    with pytest.raises(RunFolderError, match="choose another output_dir"):
        RunFolder.create("/proc/self", "run")


def test_too_little_space_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    with pytest.raises(RunFolderError, match="free some space and run the same command again"):
        run.require_space(shutil.disk_usage(tmp_path).total * 2)
    assert list(run.path.iterdir()) == []


def test_fresh_keeps_the_old_run_under_another_name(tmp_path: Path) -> None:
    RunFolder.create(tmp_path, "a").write_text("recipe.yaml", "old")
    run = RunFolder.create(tmp_path, "a", fresh=True)
    assert not (run.path / "recipe.yaml").exists()
    old = next(path for path in tmp_path.iterdir() if path.name.startswith("a.old-"))
    assert (old / "recipe.yaml").read_text() == "old"


def test_a_folder_that_is_no_run_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"no recipe\.yaml"):
        RunFolder.open(tmp_path)
    with pytest.raises(RunFolderError, match="there is no run folder"):
        RunFolder.open(tmp_path / "nowhere")


HOLD = """
import sys
from outpace.records import RunFolder
with RunFolder(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def holder(run: RunFolder):  # type: ignore[no-untyped-def]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_two_processes_cannot_hold_one_run_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    with holder(run) as process:
        with pytest.raises(RunFolderError, match=f"in use by process {process.pid}"), run.lock():
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        with run.lock():
            pass


def test_one_process_cannot_hold_a_run_twice(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    with run.lock(), pytest.raises(RunFolderError, match="already in use"), run.lock():
        pass
    with run.lock():
        pass


def checkpoint(run: RunFolder, step: int, *, complete: bool = True) -> Path:
    folder = run.path / f"checkpoint-{step}"
    folder.mkdir()
    write_atomic(folder / "model.safetensors", bytes(range(256)) * 40)
    write_atomic(folder / "trainer_state.json", "{}")
    if complete:
        mark_complete(folder)
    return folder


def test_the_newest_complete_checkpoint_is_found(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    for step in (5, 100, 20):
        checkpoint(run, step)
    found = run.checkpoint(say=lambda text: None)
    assert found is not None
    assert found.step == 100


def truncate(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 100)


def flip_one_bit(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)


def lose_a_file(folder: Path) -> None:
    (folder / "trainer_state.json").unlink()


def damage_the_mark(folder: Path) -> None:
    (folder / "complete.json").write_text('{"files": 3')


def never_finish(folder: Path) -> None:
    (folder / "complete.json").unlink()


@pytest.mark.parametrize("damage", [truncate, flip_one_bit, lose_a_file, damage_the_mark, never_finish])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before_and_says_so(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    run = RunFolder.create(tmp_path, "a")
    checkpoint(run, 10)
    damage(checkpoint(run, 20))
    said: list[str] = []
    found = find_checkpoint(run.path, said.append)
    assert found is not None
    assert found.step == 10
    assert len(said) == 1
    assert "checkpoint-20" in said[0]
    assert "falling back" in said[0]
    assert [item.step for item in list_checkpoints(run.path)] == [10]


def test_with_no_usable_checkpoint_there_is_none(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "a")
    checkpoint(run, 10, complete=False)
    assert run.checkpoint(say=lambda text: None) is None
