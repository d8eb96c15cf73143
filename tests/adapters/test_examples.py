import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, *arguments):
    """Run an example as a user does, in a process of its own; what it printed."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def save_tiny_model(folder):
    """A random model of a few thousand parameters with one token per letter."""
    import torch
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {text: i for i, text in enumerate(["<pad>", "<end>", "<unk>", *"abcdefghijklmnopqrstuvwxyz`(): \n"])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(".|\n"), "isolated")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="<end>", unk_token="<unk>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=None,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.train
@pytest.mark.timeout(240)
def test_a_plain_trl_script_trains_on_executed_code(tmp_path, monkeypatch):
    pytest.importorskip("trl")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))  # torch sets it while a model is made
    model = save_tiny_model(tmp_path / "model")
    said = run(
        "trl_plain",
        *("--model", str(model), "--tasks", "sequences/prefix_sums", "--steps", "2"),
        *("--num-generations", "4", "--max-tokens", "8", "--output", str(tmp_path / "run")),
    )
    steps = [line for line in said.splitlines() if line.startswith("step ")]
    zeros = "syntax +0.00, security +0.00, accuracy +0.00, speed +0.00"
    assert steps == [f"step {n}: reward +0.000 ({zeros})" for n in (1, 2)]


def test_the_verl_example_scores_with_the_real_grader():
    example = load("verl_reward")
    answer = "```python\nfrom itertools import accumulate\n\ndef prefix_sums(xs):\n    return list(accumulate(xs))\n```"
    with example.grader():
        good = example.compute_score("outpace", answer, "sequences/prefix_sums", {"index": 0})
        assert good["accuracy"] == 2.0
        assert good["speed"] > 0.0
        assert example.compute_score("outpace", "no idea", "sequences/prefix_sums")["score"] == 0.0


@pytest.mark.train
@pytest.mark.timeout(400)
def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    """In a plain process, on the shipped starter: what Jupyter adds to it is not ours."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    script.write_text("\n\n".join(cells), encoding="utf-8")
    small = {"OUTPACE_STEPS": "1", "OUTPACE_TOKENS": "64"}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env=os.environ | small,
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "fast     correct" in done.stdout
    assert "cheating forbidden" in done.stdout
    assert "report: runs/quickstart/report.html" in done.stdout


def test_the_quickstart_prints_what_it_promises():
    said = run("quickstart").splitlines()
    assert said[0].startswith("correct, ")
    assert said[1].startswith("wrong: ")
