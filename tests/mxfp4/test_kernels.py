"""The Triton kernels in Triton's interpreter, on a CPU; `benchmarks/moe_h200.py` checks them on a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is not installed: it comes with the [gpu] extra")


def test_kernels_agree_with_plain_pytorch_in_float64():
    script = Path(__file__).with_name("kernels_in_interpreter.py")
    ran = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    errors = json.loads(ran.stdout)
    assert errors.pop("bfloat16") < 1e-2
    assert all(error < 1e-5 for error in errors.values()), errors
