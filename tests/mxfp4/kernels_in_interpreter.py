"""Not a test: run by test_kernels.py with TRITON_INTERPRET=1. Prints the worst errors as JSON."""

import json
import sys

import torch

from outpace.policy.mxfp4.grouped import PlainEngine, Routes
from outpace.policy.mxfp4.kernels import Tile, TritonEngine
from outpace.policy.mxfp4.kernels_small import gather_from_host, int8_product
from outpace.policy.mxfp4.packing import Packed


def error(got, want) -> float:
    return float((got.double() - want.double()).norm() / want.double().norm())


def main() -> None:
    torch.manual_seed(0)
    plain, found = PlainEngine(), {}
    packed = Packed(
        torch.randint(0, 256, (5, 80, 3, 16), dtype=torch.uint8), torch.randint(118, 130, (5, 80, 3), dtype=torch.uint8)
    )
    bias = torch.randn(5, 80)
    for tokens in (1, 13, 70):
        routes = Routes.of(torch.stack([torch.randperm(5)[:2] for _ in range(tokens)]), 5)
        for dtype in (torch.float32, torch.bfloat16):
            for tile in (Tile(16, 32, 64, 4, 2), Tile(64, 128, 32, 4, 2)):
                engine, name = TritonEngine(tile), str(dtype).removeprefix("torch.")
                x, g = torch.randn(tokens, 96).to(dtype), torch.randn(routes.pairs, 80).to(dtype)
                want = plain.forward(x.double(), packed, routes, by_token=True, bias=bias)
                got = engine.forward(x, packed, routes, by_token=True, bias=bias)
                back = engine.backward(g, packed, routes)
                errors = (error(got, want), error(back, plain.backward(g.double(), packed, routes)))
                found[name] = max(found.get(name, 0.0), *errors)
    gate_up, grad = torch.randn(3, 8) * 6, torch.randn(3, 4)
    engine = TritonEngine()
    found["gate"] = error(engine.swiglu(gate_up, 1.702, 7.0), plain.swiglu(gate_up, 1.702, 7.0))
    want = plain.swiglu_backward(gate_up, grad, 1.702, 7.0)
    found["gate back"] = error(engine.swiglu_backward(gate_up, grad, 1.702, 7.0), want)
    codes, scale, x = torch.randint(-127, 128, (200, 96), dtype=torch.int8), torch.rand(200), torch.randn(3, 96)
    found["int8"] = error(int8_product(x, codes, scale), (x @ codes.float().T) * scale)
    table, ids = torch.randn(50, 70), torch.tensor([[3, 4], [49, 0]])
    found["rows"] = error(gather_from_host(table, ids), table[ids])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
