"""The filter is run here, instruction by instruction, for every system call number of both architectures."""

import struct

import pytest

from outpace.sandbox.layers import seccomp

ALLOW, DENY, KILL = 0x7FFF0000, 0x00050001, 0x80000000
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def decide(program: bytes, number: int, architecture: int, arguments: tuple[int, ...] = (0,) * 6) -> int:
    """What the kernel would do: classic BPF on the call's data."""
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *arguments)
    steps = list(struct.iter_unpack("<HBBI", program))
    at = value = 0
    while True:
        code, on_true, on_false, constant = steps[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        elif code == 0x06:
            return constant
        else:
            holds = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[code]
            at += on_true if holds else on_false


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request) -> tuple[str, list[bytes], int]:
    """An architecture, the two filters that a child is under, and the kernel's name for it."""
    name = request.param
    return name, [seccomp.program(name), seccomp.closing_program(name)], ARCHITECTURES[name]


def together(filters: list[bytes], number: int, architecture: int, arguments: tuple[int, ...] = (0,) * 6) -> int:
    """Of several filters the strictest word counts."""
    strictest = [KILL, DENY, ALLOW]
    return min((decide(one, number, architecture, arguments) for one in filters), key=strictest.index)


def test_every_number_gets_what_the_table_says(machine):
    name, filters, architecture = machine
    table = seccomp.call_numbers(name)
    names = list(table)
    killed = set(names[names.index("shmget") :])
    denied = {"ioctl", "wait4", "dup2", "dup3", "close_range"}
    by_number = {number: word for word, number in table.items()}
    assert len(by_number) == len(table), "a number stands twice"
    for number in range(1200):
        word = by_number.get(number)
        expected = DENY if word is None or word in denied else KILL if word in killed else ALLOW
        assert together(filters, number, architecture) == expected, (number, word)


def test_the_fork_server_may_do_what_it_does_and_little_more(machine):
    name, filters, architecture = machine
    for word, number in seccomp.call_numbers(name).items():
        for_server, for_child = decide(filters[0], number, architecture), together(filters, number, architecture)
        if word in seccomp.FORK_SERVER_CALLS:
            assert for_server == ALLOW
        else:
            assert for_server == for_child


def test_another_calling_convention_is_killed(machine):
    _, filters, _ = machine
    assert [decide(one, 1, 0x40000003) for one in filters] == [KILL, KILL]


def test_the_x32_convention_gets_nothing():
    program = seccomp.program("x86_64")
    assert decide(program, 0x40000000 | 1, ARCHITECTURES["x86_64"]) == DENY


@pytest.mark.parametrize("call", ["mmap", "mprotect"])
def test_memory_never_becomes_executable(machine, call):
    name, filters, architecture = machine
    number = seccomp.call_numbers(name)[call]
    assert together(filters, number, architecture, (0, 4096, 3, 0, 0, 0)) == ALLOW
    assert together(filters, number, architecture, (0, 4096, 5, 0, 0, 0)) == DENY


def test_only_the_sink_and_the_channel_are_read_and_written(machine):
    name, filters, architecture = machine
    for call in ("read", "write"):
        number = seccomp.call_numbers(name)[call]
        assert together(filters, number, architecture, (3, 0, 0, 0, 0, 0)) == ALLOW
        assert together(filters, number, architecture, (4, 0, 0, 0, 0, 0)) == DENY


def test_limits_can_be_read_and_never_set(machine):
    name, filters, architecture = machine
    number = seccomp.call_numbers(name)["prlimit64"]
    assert together(filters, number, architecture, (0, 7, 0, 1, 0, 0)) == ALLOW
    for new_limit in (1, 1 << 40):
        assert together(filters, number, architecture, (0, 7, new_limit, 0, 0, 0)) == KILL


def test_what_a_child_adds_is_small(machine):
    assert len(machine[1][1]) < len(machine[1][0]) / 2
