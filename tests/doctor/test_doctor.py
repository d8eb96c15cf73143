"""The doctor tells what is there, what is missing and what to do, on every machine."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from outpace import doctor
from outpace.errors import SandboxUnavailable
from outpace.sandbox import Layer
from outpace.schema import Isolation


def shown(report: doctor.DoctorReport) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(report)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def here() -> doctor.DoctorReport:
    return doctor.examine()


def test_every_layer_is_told_with_what_it_stops(here):
    assert [layer.name for layer in here.layers] == [layer.value for layer in Layer]
    assert all(layer.stops for layer in here.layers)
    text = shown(here)
    assert all(layer.value in text for layer in Layer)


def test_a_scoring_process_would_have_an_exact_clock_here(here):
    if "seccomp" in here.isolation.layers:
        assert here.isolation.clock == "exact"


def test_the_report_is_plain_json(here):
    data = json.loads(json.dumps(here.to_json()))
    assert data["ok"] is here.ok
    assert data["isolation"]["level"] == here.isolation.level
    assert set(data["packages"]) == set(doctor.PACKAGES)


@pytest.mark.parametrize(
    ("isolation", "ok", "words"),
    [
        (Isolation(level="full", layers=tuple(Layer), clock="exact"), True, ["speed can be rewarded"]),
        (
            Isolation(level="strict", layers=("landlock", "seccomp"), missing={"namespaces": "refused"}, clock="exact"),
            True,
            ["refused: allow user namespaces"],
        ),
        (
            Isolation(level="weak", layers=("rlimits",), missing={"landlock": "no such call"}, clock="unpinned"),
            False,
            ["--allow-weak-isolation", "no such call: Linux 5.13", "speed will not be rewarded"],
        ),
    ],
)
def test_what_is_missing_comes_with_its_remedy(monkeypatch, isolation, ok, words):
    monkeypatch.setattr(doctor, "detect", lambda settings: isolation)
    report = doctor.examine()
    assert report.ok is ok
    text = " ".join(shown(report).split())
    assert all(word in text for word in words)


def test_a_machine_that_can_start_no_sandbox_is_told_why(monkeypatch):
    def refuse(settings: object) -> Isolation:
        raise SandboxUnavailable("the sandbox needs Linux (this is darwin): run outpace in a virtual machine")

    monkeypatch.setattr(doctor, "detect", refuse)
    report = doctor.examine()
    assert not report.ok
    assert report.isolation.level == "none"
    assert "virtual machine" in shown(report)


def test_every_layer_has_its_texts():
    assert set(doctor.STOPS) == set(doctor.REMEDIES) == set(Layer)


def test_it_imports_no_torch():
    code = "import sys, outpace.doctor; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
