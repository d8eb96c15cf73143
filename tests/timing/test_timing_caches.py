import tracemalloc

import pytest

from outpace.timing import eviction_bytes, largest_cache_bytes
from outpace.timing.caches import sweeper


def write_sizes(folder, sizes):
    for index, size in enumerate(sizes):
        (folder / f"index{index}").mkdir()
        (folder / f"index{index}" / "size").write_text(size + "\n")
    return folder


@pytest.mark.parametrize(
    ("sizes", "largest"),
    [
        (["32K", "512K", "32768K"], 32 * 2**20),
        (["48K", "2M"], 2 * 2**20),
        (["64"], 64),
        (["odd"], None),
        ([], None),
    ],
)
def test_cache_sizes_are_read_as_the_kernel_writes_them(tmp_path, sizes, largest):
    assert largest_cache_bytes(write_sizes(tmp_path, sizes)) == largest


def test_a_machine_that_hides_its_caches_reports_none(tmp_path):
    assert largest_cache_bytes(tmp_path / "absent") is None


def test_what_is_swept_exceeds_the_caches_within_reason():
    assert (largest_cache_bytes() or 0) < eviction_bytes() <= 512 * 2**20


def test_warm_measurements_allocate_no_buffer():
    tracemalloc.start()
    try:
        sweeper(0)()
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_sweep_writes_to_the_buffer_it_was_sized_for():
    tracemalloc.start()
    try:
        sweep = sweeper(4 * 2**20)
        assert tracemalloc.get_traced_memory()[1] >= 4 * 2**20
    finally:
        tracemalloc.stop()
    sweep()
    sweep()
