"""Not a test: run by test_decode_kernels.py. Compiles the sampler's kernels for a Hopper GPU, which needs none.

The interpreter runs what no compiler accepts: a variable that changes its type in a loop, for one.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from outpace.policy import decode_kernels, draw_kernels

HOPPER = GPUTarget("cuda", 90, 32)
NUMBERS = {"scale": "fp32", "temperature": "fp32", "q_eps": "fp32", "k_eps": "fp32"}


def compiled(kernel, pointers, constants, warps):
    """Every argument that is neither a pointer, a constant nor in `NUMBERS` is an integer."""
    names = kernel.arg_names
    kinds = {name: pointers.get(name) or NUMBERS.get(name, "i32") for name in names}
    kinds |= dict.fromkeys(constants, "constexpr")
    source = ASTSource(kernel, kinds, {(names.index(name),): value for name, value in constants.items()})
    return triton.compile(source, target=HOPPER, options={"num_warps": warps})


def pointers(kernel, kind, **others):
    return {name: f"*{kind}" for name in kernel.arg_names if name.endswith("_ptr")} | others


def main():
    count = 0
    long = {"position_ptr": "*i64"}
    for kind, product in (("bf16", tl.bfloat16), ("fp32", tl.float32)):
        for size, group in ((64, 7), (96, 1), (128, 8)):
            deep, members = triton.next_power_of_2(size), max(16, triton.next_power_of_2(group))
            for splits in (1, 4):
                kernel = decode_kernels._attend_kernel
                sums = {"top_ptr": "*fp32", "sum_ptr": "*fp32"} | ({} if splits == 1 else {"out_ptr": "*fp32"})
                shape = {"GROUP": group, "SIZE": size, "SPLITS": splits, "MEMBERS": members, "DEEP": deep, "WIDE": 32}
                compiled(kernel, pointers(kernel, kind, **long, **sums), {**shape, "KIND": product}, 4)
                count += 1
        for has_norm in (False, True):
            kernel = decode_kernels._rotate_kernel
            shape = {"GROUP": 7, "SIZE": 64, "HAS_NORM": has_norm, "MEMBERS": 8, "HALF": 32}
            compiled(kernel, pointers(kernel, kind, **long), shape, 1)
        kernel = decode_kernels._combine_kernel
        partial = dict.fromkeys(("partial_ptr", "top_ptr", "sum_ptr"), "*fp32")
        compiled(kernel, pointers(kernel, kind, **partial), {"SIZE": 64, "SPLITS": 4, "DEEP": 64}, 2)
        kernel = decode_kernels._silu_mul_kernel
        compiled(kernel, pointers(kernel, kind), {"WIDE": 1024}, 4)
        for is_scaled in (False, True):
            sums = {"top_ptr": "*fp32", "sum_ptr": "*fp32"}
            drawn = {"uniform_ptr": "*fp64", "token_ptr": "*i64", "logprob_ptr": "*fp32", "finite_ptr": "*i1"}
            shape = {"IS_SCALED": is_scaled, "WIDE": 4096}
            kernel = draw_kernels._block_kernel
            compiled(kernel, pointers(kernel, kind, **sums), shape, 8)
            kernel = draw_kernels._choose_kernel
            compiled(kernel, pointers(kernel, kind, **sums, **drawn), {**shape, "BLOCKS": 64}, 8)
            count += 2
        count += 4
    print(count)


if __name__ == "__main__":
    main()
