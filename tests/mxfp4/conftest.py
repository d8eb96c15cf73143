"""Fixtures: the tiny gpt-oss of `tiny_gpt_oss.py` with random packed weights."""

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("peft")


@pytest.fixture
def config():
    from tiny_gpt_oss import tiny_config

    return tiny_config()


@pytest.fixture
def network(config):
    import torch

    from outpace.policy.mxfp4 import random_network

    return random_network(config, dtype=torch.float32, device=torch.device("cpu"))
