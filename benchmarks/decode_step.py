"""Milliseconds of one decode step, replayed as a CUDA graph: plain PyTorch, fused layers, fused draw, both.

    python benchmarks/decode_step.py MODEL_FOLDER

Rows stand at position 290 of 592 and draw from the whole vocabulary. The model must be shaped like Llama; needs a GPU
with Triton.
"""

import argparse
from unittest import mock

import torch

from outpace.policy import SamplingSettings, draw, load
from outpace.policy.engine import Engine, build_slots
from outpace.policy.lean_decode import LeanDecoder

STEPS, PLACE = 40, 290
WAYS = {"plain": (False, False), "fused draw": (False, True), "fused layers": (True, False), "both": (True, True)}


def step_ms(network, rows, *, is_layer_fused, is_draw_fused):
    """The quickest of three rounds."""
    engine = Engine(
        network=network,
        decoder=LeanDecoder(network, fused=is_layer_fused),
        slots=build_slots(network, size=rows, positions=592, max_new=400),
        settings=SamplingSettings(max_new_tokens=400),
        eos_ids=(),
        stamp=(),
    )
    state, times = engine.slots, []
    runs = draw.runs_kernels
    with torch.inference_mode(), mock.patch.object(draw, "runs_kernels", runs if is_draw_fused else lambda _: False):
        for _ in range(4):  # the first captures the graph
            state.position_B.fill_(PLACE)
            state.count_B.zero_()
            state.alive_B.fill_(True)
            engine.advance(rows, state.positions)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(STEPS):
                engine.advance(rows, state.positions)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / STEPS)
    return min(times[1:])


def main():
    """Print one line for each batch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    network = load(parser.parse_args().model, dtype="bfloat16", device="cuda").model
    for rows in (8, 64, 256):
        ms = {
            name: step_ms(network, rows, is_layer_fused=layer, is_draw_fused=drawing)
            for name, (layer, drawing) in WAYS.items()
        }
        figures = ", ".join(f"{name} {took:.3f}" for name, took in ms.items())
        print(f"{rows} rows: {figures} ms a step; {1000 * rows / ms['both']:,.0f} tokens/s")


if __name__ == "__main__":
    main()
