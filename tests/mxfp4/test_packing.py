"""The number format: what is unpacked is what transformers unpacks, and packing is the nearest."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.errors import ModelError
from outpace.policy.mxfp4.packing import BLOCK, LEVELS, Packed, check_packed, pack, unpack


def at_random(*lead: int) -> Packed:
    return Packed(
        torch.randint(0, 256, (*lead, 2, 16), dtype=torch.uint8),
        torch.randint(100, 140, (*lead, 2), dtype=torch.uint8),
    )


def test_unpacking_agrees_with_transformers_bit_for_bit():
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    packed = at_random(3, 5)
    theirs = convert_moe_packed_tensors(packed.blocks, packed.scales, dtype=torch.bfloat16)
    assert torch.equal(unpack(packed, torch.bfloat16), theirs.transpose(1, 2))


def test_the_lower_half_of_a_byte_is_the_earlier_column():
    blocks = torch.zeros(1, 1, 16, dtype=torch.uint8)
    blocks[0, 0, 0] = 0x2 | (0xF << 4)
    numbers = unpack(Packed(blocks, torch.full((1, 1), 128, dtype=torch.uint8)))
    assert numbers[0, :3].tolist() == [2.0, -12.0, 0.0]


def test_packing_what_was_unpacked_changes_nothing():
    numbers = unpack(at_random(4, 6))
    assert torch.equal(unpack(pack(numbers)), numbers)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), power=st.integers(-20, 20))
def test_every_packed_number_is_the_nearest_that_its_scale_allows(seed, power):
    numbers = torch.randn(3, BLOCK, generator=torch.Generator().manual_seed(seed)) * 2.0**power
    packed = pack(numbers)
    scale = torch.exp2(packed.scales.float() - 127)
    levels = torch.tensor([*LEVELS, *(-level for level in LEVELS)])
    nearest = (numbers[..., None] - scale[..., None] * levels).abs().amin(dim=-1)
    assert torch.allclose((unpack(packed) - numbers).abs(), nearest, rtol=1e-6, atol=0)


def test_normal_numbers_lose_about_a_tenth_of_their_size():
    numbers = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))
    error = (unpack(pack(numbers)) - numbers).norm() / numbers.norm()
    assert 0.05 < error < 0.13


def test_zeros_stay_zeros():
    assert not unpack(pack(torch.zeros(2, BLOCK))).any()


def test_columns_that_are_no_multiple_of_32_are_refused():
    with pytest.raises(ModelError, match="pad its columns"):
        pack(torch.zeros(2, 33))


def test_nan_is_refused():
    with pytest.raises(ModelError, match="NaN"):
        pack(torch.full((1, BLOCK), float("nan")))


def test_a_stack_of_another_shape_is_named():
    with pytest.raises(ModelError, match="x_blocks"):
        check_packed("x", at_random(3, 5), experts=3, rows=6, columns=64)
