"""Whatever ends a run, the same command takes it up again and ends with the very same weights and records."""

import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import TinyRun
from tiny import starts_with_vowel

from outpace.errors import InfrastructureError, RunFolderError, TrainingDiverged
from outpace.training.interrupts import Interrupted


def on_call(
    number: int, act: Callable[[], Any], rule: Callable[[str], Any] = starts_with_vowel
) -> Callable[[str], Any]:
    """The rule, with something happening when completion `number` is graded."""
    count = 0

    def acting(completion: str) -> Any:
        nonlocal count
        count += 1
        if count == number:
            act()
        return rule(completion)

    return acting


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def assert_same(one: TinyRun, other: TinyRun, step: int) -> None:
    for (name, expected), actual in zip(one.weights(step).items(), other.weights(step).values(), strict=True):
        assert torch.equal(expected, actual), name
    assert one.figures() == other.figures()
    assert one.folder.samples() == other.folder.samples()


SETTINGS = [
    pytest.param(signal.SIGTERM, {}, id="full, SIGTERM"),
    pytest.param(
        signal.SIGINT,
        {"use_peft": True, "beta": 0.05, "gradient_accumulation_steps": 2, "per_device_train_batch_size": 4},
        id="lora, SIGINT",
    ),
    pytest.param(signal.SIGINT, {"num_iterations": 2}, id="two updates a generation, SIGINT"),
]


@pytest.mark.parametrize(("number", "keys"), SETTINGS)
def test_a_signal_while_sampling_leaves_a_run_that_resumes_bit_for_bit(
    model_folder: Path, tmp_path: Path, keys: dict[str, Any], number: int
) -> None:
    straight = TinyRun(model_folder, tmp_path / "a", max_steps=6, save_steps=2, **keys)
    straight.train()
    stopped = TinyRun(model_folder, tmp_path / "b", max_steps=6, save_steps=2, **keys)
    result = stopped.train(on_call(8 * 1 + 3, send(number)))
    assert result.status == "interrupted"
    assert 0 < result.steps < 6
    assert result.after is None
    assert "stopping after this step" in stopped.printed
    assert stopped.train().status == "finished"
    assert f"resuming from step {result.steps} of 6" in stopped.printed
    assert_same(straight, stopped, 6)


def test_the_handlers_of_before_are_back_after_a_run(model_folder: Path, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    TinyRun(model_folder, tmp_path, max_steps=1).train()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_second_signal_stops_at_once_and_the_run_still_resumes(model_folder: Path, tmp_path: Path) -> None:
    straight = TinyRun(model_folder, tmp_path / "a", max_steps=4)
    straight.train()
    stopped = TinyRun(model_folder, tmp_path / "b", max_steps=4)

    def twice() -> None:
        send(signal.SIGINT)()
        send(signal.SIGINT)()

    with pytest.raises(Interrupted):
        stopped.train(on_call(8 * 2 + 5, twice))
    assert stopped.train().status == "finished"
    assert_same(straight, stopped, 4)


def test_a_signal_during_evaluation_stops_at_once(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=2, eval_samples=4)
    with pytest.raises(Interrupted):
        run.train(on_call(3, send(signal.SIGTERM)))
    assert not (run.folder.path / "evaluation-before.json").exists()
    result = run.train()
    assert result.comparison is not None


@pytest.mark.parametrize("damage", ["truncated", "unmarked"])
def test_a_damaged_newest_checkpoint_falls_back_and_the_result_is_the_same(
    model_folder: Path, tmp_path: Path, damage: str
) -> None:
    straight = TinyRun(model_folder, tmp_path / "a", max_steps=6, save_steps=2)
    straight.train()
    run = TinyRun(model_folder, tmp_path / "b", max_steps=6, save_steps=2)
    run.train(on_call(8 * 3 + 1, send(signal.SIGINT)))
    newest = run.folder.path / "checkpoint-4"
    if damage == "truncated":
        os.truncate(newest / "model.safetensors", 1000)
    else:
        (newest / "complete.json").unlink()
    assert run.train().status == "finished"
    assert "checkpoint-4" in run.printed
    assert "falling back to the one before" in run.printed
    assert "resuming from step 2 of 6" in run.printed
    assert_same(straight, run, 6)


def test_a_finished_run_trains_no_more_and_shows_the_same_evaluations(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=2, eval_samples=4)
    first = run.train()
    second = run.train()
    assert run.grader is not None
    assert run.grader.graded == []
    assert (second.status, second.steps) == ("finished", 2)
    assert second.comparison == first.comparison


def test_a_run_killed_between_training_and_the_last_evaluation_evaluates_what_it_trained(
    model_folder: Path, tmp_path: Path
) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=3, eval_samples=4)
    first = run.train()
    (run.folder.path / "evaluation-after.json").unlink()
    again = run.train()
    assert again.after is not None
    assert first.after is not None
    assert again.after.samples == first.after.samples


def test_a_run_may_be_extended_and_equals_one_that_was_longer_from_the_start(
    model_folder: Path, tmp_path: Path
) -> None:
    long = TinyRun(model_folder, tmp_path / "a", max_steps=5)
    long.train()
    grown = TinyRun(model_folder, tmp_path / "b", eval_samples=4)
    short = grown.train(max_steps=2)
    extended = grown.train(max_steps=5)
    assert short.after != extended.after
    assert_same(long, grown, 5)


def test_other_settings_are_refused_in_a_run_that_has_begun(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=1)
    run.train()
    with pytest.raises(RunFolderError, match=r"begun with learning_rate=0\.01 .* says 0\.02: use --fresh"):
        run.train(learning_rate=0.02)


def test_every_prompt_is_asked_once_before_any_is_asked_again_also_across_a_resume(
    model_folder: Path, tmp_path: Path
) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=6, per_device_train_batch_size=4)
    run.train(on_call(4 * 3 + 1, send(signal.SIGINT)))
    run.train()
    asked = [row["task_id"] for row in run.folder.samples()][::4]
    assert len(asked) == 6
    assert set(asked[:3]) == set(asked[3:]) == {"fake/one", "fake/two", "fake/three"}


def test_a_poisoned_gradient_stops_the_run_before_an_update_and_the_checkpoint_before_is_sound(
    model_folder: Path, tmp_path: Path
) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=5)

    def poison() -> None:
        assert run.policy is not None
        with torch.no_grad():
            run.policy.model.model.layers[1].mlp.down_proj.weight[0, 0] = float("nan")

    with pytest.raises(TrainingDiverged, match=r"step 3: the gradient of .* is NaN or infinite \(float32\)"):
        run.train(on_call(8 * 3, poison))
    assert [record["step"] for record in run.folder.metrics()] == [1, 2]
    assert all(bool(torch.isfinite(weight).all()) for weight in run.weights(2).values())
    assert not (run.folder.path / "checkpoint-3").exists()
    assert run.train().status == "finished"


def test_weights_that_are_poisoned_before_sampling_are_told_by_the_sampler(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=3, eval_samples=0)

    def poison() -> None:
        assert run.policy is not None
        with torch.no_grad():
            run.policy.model.lm_head.weight.fill_(float("inf"))

    with pytest.raises(TrainingDiverged):
        run.train(on_call(8, poison))


def test_a_sample_that_we_failed_to_grade_takes_no_part(model_folder: Path, tmp_path: Path) -> None:
    calls = iter(range(10**6))
    run = TinyRun(model_folder, tmp_path, max_steps=3)
    run.train(lambda text: None if next(calls) % 4 == 0 else starts_with_vowel(text))
    for record in run.figures():
        assert record["not_graded"] == 0.25
        assert all(math.isfinite(value) for value in record.values() if isinstance(value, float))
    assert all(bool(torch.isfinite(weight).all()) for weight in run.weights(3).values())
    rows = run.folder.samples()
    assert [row["reward"] for row in rows if row["outcome"] is None] == [None] * 6


def test_when_most_of_a_batch_cannot_be_graded_the_run_stops_with_the_first_failure(
    model_folder: Path, tmp_path: Path
) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=3)
    with pytest.raises(InfrastructureError, match=r"8 of 8 completions .* the rule says that we failed"):
        run.train(lambda text: None)


def test_out_of_memory_halves_the_micro_batch_and_the_update_stays_the_same(model_folder: Path, tmp_path: Path) -> None:
    straight = TinyRun(model_folder, tmp_path / "a", max_steps=4, beta=0.05)
    straight.train()
    run = TinyRun(model_folder, tmp_path / "b", max_steps=4, beta=0.05)

    def exhaust() -> None:
        def no_memory(*args: Any) -> None:
            if torch.is_grad_enabled():
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

        assert run.policy is not None
        run.policy.model.model.layers[0].register_forward_pre_hook(no_memory)

    run.train(on_call(8 * 2 + 8, exhaust))
    assert "out of memory: per_device_train_batch_size=4, gradient_accumulation_steps=2 from here on" in run.printed
    assert [record["step"] for record in run.folder.metrics()] == [1, 2, 3, 4]
    for name, expected in straight.weights(4).items():
        torch.testing.assert_close(run.weights(4)[name], expected, atol=1e-4, rtol=0)


def test_a_batch_of_one_that_does_not_fit_is_told_in_one_sentence(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=2, per_device_train_batch_size=1, gradient_accumulation_steps=4)

    def exhaust(completion: str) -> Any:
        raise MemoryError

    with pytest.raises(InfrastructureError, match="lower max_completion_length or num_generations"):
        run.train(exhaust)


def test_too_little_space_for_a_checkpoint_stops_the_run_with_the_one_before_intact(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=3)
    real = shutil.disk_usage

    def fill() -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: real(path)._replace(free=1000))

    with pytest.raises(RunFolderError, match="free some space and run the same command again to resume"):
        run.train(on_call(8 * 2, fill))
    monkeypatch.undo()
    assert run.train().status == "finished"
    assert "resuming from step 1 of 3" in run.printed


def test_a_checkpoint_that_cannot_be_written_is_told_and_those_before_stay(model_folder: Path, tmp_path: Path) -> None:
    run = TinyRun(model_folder, tmp_path, max_steps=3)
    obstacle = run.folder.path / "checkpoint-2"
    with pytest.raises(RunFolderError, match="checkpoint of step 2 could not be written"):
        run.train(on_call(8 * 2, lambda: obstacle.write_text("a file in the way")))
    obstacle.unlink()
    assert run.train().status == "finished"
    assert "resuming from step 1 of 3" in run.printed


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from outpace.training import prepare_environment
prepare_environment()
from pathlib import Path
from runs import TinyRun
run = TinyRun(Path(sys.argv[1]), Path(sys.argv[2]), max_steps=8, save_steps=2)
print("start", flush=True)
run.train()
import torch
assert not torch.distributed.is_initialized()
"""


@pytest.mark.train
@pytest.mark.timeout(240)
def test_two_processes_train_one_run_and_a_single_one_takes_it_up(model_folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent)).replace("max_steps=8", "max_steps=2"))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", str(script)]
    done = subprocess.run([*command, str(model_folder), str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = TinyRun(model_folder, tmp_path, max_steps=4, save_steps=2)
    assert {path.name for path in (run.folder.path / "checkpoint-2").glob("rng_state_*")} == {
        "rng_state_0.pth",
        "rng_state_1.pth",
    }
    assert len(run.folder.samples(1)) == 16
    run.train()
    assert "resuming from step 2 of 4" in run.printed
    assert [record["step"] for record in run.folder.metrics()] == [1, 2, 3, 4]


@pytest.mark.train
@pytest.mark.timeout(180)
def test_a_killed_process_leaves_a_run_that_resumes_bit_for_bit(model_folder: Path, tmp_path: Path) -> None:
    straight = TinyRun(model_folder, tmp_path / "a", max_steps=8, save_steps=2)
    straight.train()
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(tests=str(Path(__file__).parent))))
    process = subprocess.Popen([sys.executable, str(script), str(model_folder), str(tmp_path / "b")])
    metrics = tmp_path / "b" / "tiny" / "metrics.jsonl"
    try:
        while process.poll() is None and (not metrics.exists() or metrics.read_bytes().count(b"\n") < 3):
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    killed = TinyRun(model_folder, tmp_path / "b", max_steps=8, save_steps=2)
    assert killed.train().status == "finished"
    assert_same(straight, killed, 8)
