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
def machine(request) -> tuple[str, bytes, int]:
    return request.param, seccomp.program(request.param), ARCHITECTURES[request.param]


def numbers(name: str) -> dict[str, int]:
    words = (seccomp._X86_64 if name == "x86_64" else seccomp._AARCH64).split()
    return {word: int(number) for word, number in zip(words[::2], words[1::2], strict=True)}


def test_every_number_gets_what_the_table_says(machine):
    name, program, architecture = machine
    table = numbers(name)
    names = list(table)
    killed = set(names[names.index("shmget") :])
    by_number = {number: word for word, number in table.items()}
    assert len(by_number) == len(table), "a number stands twice"
    for number in range(1200):
        word = by_number.get(number)
        expected = DENY if word is None else KILL if word in killed else ALLOW
        if word == "ioctl":
            expected = DENY
        assert decide(program, number, architecture) == expected, (number, word)


def test_another_calling_convention_is_killed(machine):
    _, program, _ = machine
    assert decide(program, 1, 0x40000003) == KILL


def test_the_x32_convention_gets_nothing():
    program = seccomp.program("x86_64")
    assert decide(program, 0x40000000 | 1, ARCHITECTURES["x86_64"]) == DENY


@pytest.mark.parametrize("call", ["mmap", "mprotect"])
def test_memory_never_becomes_executable(machine, call):
    name, program, architecture = machine
    number = numbers(name)[call]
    assert decide(program, number, architecture, (0, 4096, 3, 0, 0, 0)) == ALLOW
    assert decide(program, number, architecture, (0, 4096, 5, 0, 0, 0)) == DENY


def test_only_the_sink_and_the_channel_are_read_and_written(machine):
    name, program, architecture = machine
    for call in ("read", "write"):
        number = numbers(name)[call]
        assert decide(program, number, architecture, (3, 0, 0, 0, 0, 0)) == ALLOW
        assert decide(program, number, architecture, (4, 0, 0, 0, 0, 0)) == DENY


def test_limits_can_be_read_and_never_set(machine):
    name, program, architecture = machine
    number = numbers(name)["prlimit64"]
    assert decide(program, number, architecture, (0, 7, 0, 1, 0, 0)) == ALLOW
    for new_limit in (1, 1 << 40):
        assert decide(program, number, architecture, (0, 7, new_limit, 0, 0, 0)) == KILL


def test_a_search_takes_a_dozen_steps_not_a_hundred():
    assert len(seccomp.program("x86_64")) // 8 < 256
