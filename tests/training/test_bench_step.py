"""`outpace bench step` on the starter: both samplers take the same steps, and their phases are reported."""

import pytest

from outpace.bench import step as bench
from outpace.config import load_recipe
from outpace.errors import ConfigError

SMALL = ["tasks=sequences/prefix_sums", "num_generations=2", "per_device_train_batch_size=2", "max_completion_length=8"]


@pytest.mark.train
def test_a_step_is_measured_by_phases_with_each_sampler():
    figures = bench.run(load_recipe("starter", SMALL), steps=1)
    for name in ("group", "transformers"):
        assert 0 < figures[name]["sample_s"] < figures[name]["step_s"]
        assert figures[name]["tokens_per_s"] > 0
        assert 0 < figures[name]["completion_tokens"] <= 8
        assert figures[name]["reserved_GB"] is None or figures[name]["reserved_GB"] > 0
    assert figures["ratio"] == pytest.approx(figures["transformers"]["step_s"] / figures["group"]["step_s"])


@pytest.mark.parametrize("samplers", [[], ["vlllm"]])
def test_a_sampler_that_does_not_exist_is_refused_before_anything_runs(samplers):
    with pytest.raises(ConfigError, match="name group, transformers or vllm"):
        bench.run(load_recipe("starter", SMALL), samplers=samplers)
