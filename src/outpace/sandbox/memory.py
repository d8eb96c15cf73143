"""Makes the zygote cheap to fork: more than half of a short child's time is copying and tearing down its memory.

Standard library only; runs in the zygote. Both steps change cost, never behaviour, and both may fail harmlessly:
`merge_mappings` joins the five mappings of each shared library to two; `pin_written_pages` has the kernel copy, at
fork, the pages that every child writes anyway, instead of one page fault each (a fault costs more than the copy).
"""

import contextlib
import os
import struct

from .layers import kernel

_PAGE = os.sysconf("SC_PAGESIZE")
_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRESENT, _EXCLUSIVE, _FILE_OR_SHARED = 1 << 63, 1 << 56, 1 << 61
_MAX_BUFFERS = 1024
_RING_SETUP, _RING_REGISTER, _REGISTER_BUFFERS = 425, 427, 0


class _Mapping:
    """One line of /proc/self/maps."""

    def __init__(self, line: str) -> None:
        addresses, self.rights, _, _, self.inode, *path = line.split()
        self.start, self.end = (int(address, 16) for address in addresses.split("-"))
        self.path = path[0] if path else ""


def _mappings(proc: int) -> list[_Mapping]:
    with open("self/maps", opener=lambda name, flags: os.open(name, flags, dir_fd=proc)) as maps:
        return [_Mapping(line) for line in maps]


def open_proc() -> int | None:
    """A descriptor of /proc that outlives the loss of all files; None where it is not mounted."""
    try:
        return os.open("/proc", os.O_PATH)
    except OSError:
        return None


def merge_mappings(proc: int | None) -> None:
    """Give neighbouring mappings of one library equal rights, so that the kernel joins them.

    Read-only data becomes executable beside code, relocated data writable beside data; nothing is both.
    """
    if proc is None:
        return
    with contextlib.suppress(OSError):
        for mapping in _mappings(proc):
            is_library = mapping.path.endswith(".so") or ".so." in mapping.path
            if is_library and mapping.rights.startswith("r--"):
                kernel.protect(mapping.start, mapping.end - mapping.start, _rights_beside(mapping, proc))


def _rights_beside(mapping: _Mapping, proc: int) -> int:
    written = any(_is_anonymous(entry) for entry in _page_entries(mapping, proc))
    return _READ | _WRITE if written else _READ | _EXECUTE


def _page_entries(mapping: _Mapping, proc: int) -> list[int]:
    count = (mapping.end - mapping.start) // _PAGE
    pagemap = os.open("self/pagemap", os.O_RDONLY, dir_fd=proc)
    data = os.pread(pagemap, count * 8, mapping.start // _PAGE * 8)
    os.close(pagemap)
    return list(struct.unpack(f"<{count}Q", data))


def _is_anonymous(entry: int) -> bool:
    return bool(entry & _PRESENT) and not entry & _FILE_OR_SHARED


def pin_written_pages(proc: int | None) -> bool:
    """Pin the pages that a living child, or this process since that fork, has written; False without pins.

    Those pages are no longer shared with the child, which the page table shows. The next fork copies them at once.
    `proc` is a descriptor of /proc. Pinning needs io_uring; many containers refuse it, and then each page costs a
    fault as usual. The pins live as long as this process.
    """
    if proc is None:
        return False
    try:
        pages = [
            mapping.start + index * _PAGE
            for mapping in _mappings(proc)
            if mapping.rights.startswith("rw")
            for index, entry in enumerate(_page_entries(mapping, proc))
            if _is_anonymous(entry) and entry & _EXCLUSIVE
        ]
        runs = _joined(pages)[:_MAX_BUFFERS]
        buffers = b"".join(struct.pack("<QQ", start, length) for start, length in runs)
        ring = kernel.syscall(_RING_SETUP, 1, bytes(120))
        kernel.syscall(_RING_REGISTER, ring, _REGISTER_BUFFERS, buffers, len(runs))
    except OSError:
        return False
    return True


def _joined(pages: list[int]) -> list[tuple[int, int]]:
    """Runs of neighbouring pages as (start, length)."""
    runs: list[tuple[int, int]] = []
    for page in pages:
        if runs and sum(runs[-1]) == page:
            runs[-1] = (runs[-1][0], runs[-1][1] + _PAGE)
        else:
            runs.append((page, _PAGE))
    return runs
