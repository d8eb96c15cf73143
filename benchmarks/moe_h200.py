"""gpt-oss in 4 bits on one GPU: kernels against float64, then memory, sampling and step time. Prints a table last.

Run from a source tree: `PYTHONPATH=src python benchmarks/moe_h200.py [--quick]`; on a machine without a GPU it checks
the kernels in Triton's interpreter (`TRITON_INTERPRET=1`) and stops. Writes moe.json to $OUT where that is set.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch

from outpace.policy.mxfp4.grouped import PlainEngine, Routes
from outpace.policy.mxfp4.kernels import Tile, TritonEngine
from outpace.policy.mxfp4.kernels_small import gather_from_host, int8_product
from outpace.policy.mxfp4.packing import Packed


def packed_at_random(experts, rows, columns, device):
    """Random codes with scales around 2**-7, as trained weights have."""
    blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8, device=device)
    scales = torch.randint(117, 123, (experts, rows, columns // 32), dtype=torch.uint8, device=device)
    return Packed(blocks, scales)


def error(got, want):
    """Relative error in the Euclidean norm, against a float64 reference."""
    return float((got.double() - want).norm() / want.norm())


def check(device, experts, rows, columns, tokens_list, top_k):
    """Forward and input gradient against float64: worst relative error by type and number of tokens."""
    found = {}
    packed, plain = packed_at_random(experts, rows, columns, device), PlainEngine()
    for tokens in tokens_list:
        chosen = torch.rand(tokens, experts, device=device).topk(top_k).indices
        routes = Routes.of(chosen, experts)
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(tokens, columns, device=device).to(dtype)
            g = torch.randn(tokens * top_k, rows, device=device).to(dtype)
            for tile in (None, Tile(16, 64, 128, 4, 3), Tile(64, 128, 64, 4, 3)):
                if dtype == torch.float32 and (tile is None or tile.pairs > 16):
                    continue  # float32 is for checking only, and large tiles of it do not fit
                engine = TritonEngine(tile)
                got = engine.forward(x, packed, routes, by_token=True)
                want = plain.forward(x.double(), packed, routes, by_token=True)
                back = engine.backward(g, packed, routes)
                want_back = plain.backward(g.double(), packed, routes)
                name = f"{str(dtype)[6:]} {tokens} tokens, tile {'chosen' if tile is None else tile.pairs}"
                found[name] = (error(got, want), error(back, want_back))
    return found


def check_small(device):
    """8-bit products and host rows."""
    codes = torch.randint(-127, 128, (4096, 2880), dtype=torch.int8, device=device)
    scale = (torch.rand(4096, device=device) / 1000).bfloat16()
    x = torch.randn(8, 2880, device=device).bfloat16()
    want = (x.double() @ codes.double().T) * scale.double()
    table = torch.randn(1000, 2880).bfloat16()
    table = table.pin_memory() if device.type == "cuda" else table
    ids = torch.randint(0, 1000, (4, 7), device=device)
    is_equal = torch.equal(gather_from_host(table, ids).cpu(), table[ids.cpu()])
    return {"int8": error(int8_product(x, codes, scale), want), "host rows equal": is_equal}


def milliseconds(work, repeats=20):
    """Mean time of one call by CUDA events, after three calls."""
    for _ in range(3):
        work()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeats


DECODE_TILES = [
    Tile(16, wide, deep, warps, stages)
    for wide, deep, warps, stages in (
        (64, 64, 4, 4), (64, 128, 4, 3), (128, 64, 4, 4), (128, 64, 4, 6), (128, 64, 8, 4), (128, 64, 2, 4),
        (128, 32, 4, 5), (256, 64, 8, 4), (256, 64, 4, 3), (256, 32, 4, 4),
    )
]  # fmt: skip
TRAIN_TILES = [
    Tile(64, 128, 64, 4, 3), Tile(64, 128, 32, 4, 4), Tile(64, 256, 64, 8, 3), Tile(128, 128, 64, 4, 3),
    Tile(128, 64, 64, 4, 3), Tile(128, 64, 64, 8, 3), Tile(128, 64, 32, 4, 4), Tile(128, 64, 128, 4, 2),
    Tile(64, 64, 128, 4, 3), Tile(128, 128, 32, 4, 3),
]  # fmt: skip


def sweep(device):
    """Times of tile sizes for the two matrices of a layer, at decoding and training sizes (tokens -> tile -> ms)."""
    up, down = packed_at_random(32, 5760, 2880, device), packed_at_random(32, 2880, 2880, device)
    found = {}
    for tokens, tiles in ((1, DECODE_TILES), (8, DECODE_TILES), (16, DECODE_TILES), (1152, TRAIN_TILES)):
        routes = Routes.of(torch.rand(tokens, 32, device=device).topk(4).indices, 32)
        x = torch.randn(tokens, 2880, device=device).bfloat16()
        rows, grads = routes.gather(x), torch.randn(routes.pairs, 5760, device=device).bfloat16()
        for tile in tiles:
            engine = TritonEngine(tile)
            try:
                times = [
                    milliseconds(lambda: engine.forward(x, up, routes, by_token=True)),  # noqa: B023
                    milliseconds(lambda: engine.forward(rows, down, routes, by_token=False)),  # noqa: B023
                ]
                if tokens > 16:
                    times += [
                        milliseconds(lambda: engine.backward(grads, up, routes)),  # noqa: B023
                        milliseconds(lambda: engine.backward(rows, down, routes)),  # noqa: B023
                    ]
            except Exception as failure:  # a tile that does not fit is a result too
                times = [type(failure).__name__]
            found[f"{tokens}: {tile.pairs}x{tile.wide}x{tile.deep} w{tile.warps} s{tile.stages}"] = times
    return found


def main():
    """Check, sweep, measure; the table comes last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="kernels only")
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--completion", type=int, default=1024)
    parser.add_argument("--memory", type=float, default=12.0)
    parser.add_argument("--batches", default="1,4,8,16")
    parser.add_argument("--no-sweep", action="store_true")
    options = parser.parse_args()
    began = time.perf_counter()
    has_gpu = torch.cuda.is_available()
    device = torch.device("cuda" if has_gpu else "cpu")
    torch.manual_seed(0)
    shape = (32, 5760, 2880, (1, 8, 300), 4) if has_gpu else (4, 96, 64, (1, 9), 2)
    report = {"check": check(device, *shape)}
    try:
        measure(report, options, device)
    finally:  # what was measured before a failure is worth showing
        report["seconds"] = time.perf_counter() - began
        if os.environ.get("OUT"):
            Path(os.environ["OUT"], "moe.json").write_text(json.dumps(report, indent=1, default=str))
        show(report)


def measure(report, options, device):
    """Add to the report what needs a GPU."""
    if device.type == "cuda":
        report["small"] = check_small(device)
        if not options.no_sweep:
            report["sweep"] = sweep(device)
        if not options.quick:
            from outpace.bench.moe import MoeSettings, run

            batches = tuple(int(batch) for batch in options.batches.split(","))
            settings = MoeSettings(
                layers=options.layers, completion_tokens=options.completion, memory_GB=options.memory, batches=batches
            )
            report["moe"] = run(settings)


def show(report):
    """The short table."""
    for name, errors in report["check"].items():
        print(f"error {name}: forward {errors[0]:.1e}, gradient {errors[1]:.1e}")
    print("small:", report.get("small"))
    for name, times in report.get("sweep", {}).items():
        print("ms", name, " ".join(f"{t:.3f}" if isinstance(t, float) else t for t in times))
    moe = report.get("moe", {})
    for key in ("weights_GB", "four_bit_weights", "trained_by_family", "step", "plain"):
        if key in moe:
            print(f"{key}: {moe[key]}")
    for batch, figures in moe.get("sampling", {}).items():
        print(f"batch {batch}: " + ", ".join(f"{name} {value:.2f}" for name, value in figures.items()))
    print(f"{report['seconds']:.0f} s")


if __name__ == "__main__":
    main()
