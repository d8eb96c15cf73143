"""Where the time of one decoding step and of one training row goes: kernels by total time, on a GPU."""

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from outpace.bench.moe import MoeSettings, build, train_on
from outpace.policy.decode import ModelDecoder
from outpace.policy.engine import build_slots


def main():
    """Profile a model of a few layers, which is enough to see the shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    policy, _ = build(MoeSettings(layers=options.layers))
    network = policy.model.get_base_model()
    slots = build_slots(network, size=options.batch, positions=1152, max_new=1024)
    slots.position_B.fill_(600)
    decode = ModelDecoder(network)
    row = torch.randint(0, 200000, (1152,), device="cuda")
    for name, work in (
        ("decode", lambda: decode(slots, options.batch, slots.positions)),
        ("train", lambda: train_on(policy.model, row, 128, 1.0)),
    ):
        context = torch.inference_mode() if name == "decode" else torch.enable_grad()
        network.train(name == "train")
        with context:
            work()
            torch.cuda.synchronize()
            with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as seen:
                work()
                torch.cuda.synchronize()
        kernels = [event for event in seen.key_averages() if event.device_type == torch.autograd.DeviceType.CUDA]
        kernels.sort(key=lambda event: -event.self_device_time_total)
        total = sum(event.self_device_time_total for event in kernels)
        count = sum(event.count for event in kernels)
        print(f"{name}: {count} kernels, {total / 1000:.2f} ms on the GPU for {options.layers} layers")
        for event in kernels[:22]:
            print(f"  {event.self_device_time_total / 1000:8.3f} ms {event.count:5d}  {event.key[:90]}")


if __name__ == "__main__":
    main()
