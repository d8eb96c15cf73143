"""The Triton kernels of the sampler in Triton's interpreter, on a CPU."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton", reason="Triton is not installed: it comes with the [gpu] extra")


def test_the_kernels_compile_for_a_gpu(tmp_path):
    script = Path(__file__).with_name("compile_kernels.py")
    plain = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment = plain | {"TRITON_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=55, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert int(ran.stdout) == 28


def run_in_interpreter(part: str) -> dict[str, float]:
    script = Path(__file__).with_name("decode_kernels_in_interpreter.py")
    ran = subprocess.run(
        [sys.executable, str(script), part],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    if "only 0-dimensional arrays can be converted" in ran.stderr:
        pytest.skip("this Triton's interpreter counts loops only with NumPy before 2.4: a newer Triton is needed")
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)


def test_a_fused_step_and_its_kernels_agree_with_plain_pytorch():
    errors = run_in_interpreter("decoding")
    assert all(error < (2e-2 if "bfloat16" in name else 2e-6) for name, error in errors.items()), errors


def test_the_kernels_draw_the_tokens_that_plain_pytorch_draws():
    found = run_in_interpreter("drawing")
    assert found["equal"] >= 0.999
    assert found["log-probability"] < 1e-5
    freedom = found["freedom"]
    # Wilson-Hilferty: about 4.5 standard deviations
    assert found["chi-square"] < freedom * (1 - 2 / (9 * freedom) + 4.5 * math.sqrt(2 / (9 * freedom))) ** 3
