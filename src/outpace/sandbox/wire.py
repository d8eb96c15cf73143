"""Bytes between parent and child: length-capped frames, and a strict decoder of plain values.

Parent to child: `marshal`, version 2 (no shared references, so arguments that alias each other arrive as copies).
Child to parent: one kind byte and a marshal version 2 value that only `decode` reads. A child is hostile: neither
`marshal.loads` nor `pickle` ever sees its bytes here, no name in them is looked up, and what they can make this
process allocate is bounded. `decode` builds values of exactly these types: None, bool, int, float, str, bytes,
list, tuple, dict, set, frozenset, complex.

Not covered: whether a value is the right one (a comparator's business).
"""

import marshal
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from outpace.errors import TaskError
from outpace.schema import Args

HEADER = struct.Struct("<I")
"""Before a frame to a child: the length of what follows."""
REPLY_HEADER = struct.Struct("<IBI")
"""Before a reply: the length of its body, its kind, and the number of the frame that it answers."""
MAX_DEPTH = 100
MAX_CONTAINERS = 2_000_000
MAX_COLLISIONS = 64

LOADED, VALUE, EXCEPTION, EXIT, MEMORY, WRONG_TYPE, TOO_LARGE, NO_ENTRY, NO_PARSE = b"LVEXMTBNS"
KINDS = frozenset(b"LVEXMTBNS")


class BadFrame(Exception):
    """The bytes are not what our child code writes: somebody else wrote them."""


class TooDeep(BadFrame):
    """A value nested deeper than `MAX_DEPTH`, or of more than `MAX_CONTAINERS` containers."""


def encode_frame(payload: Any) -> bytes:
    """A frame for a child; raises TaskError when `payload` holds anything but plain data."""
    try:
        body = marshal.dumps(payload, 2)
    except ValueError as error:
        raise TaskError(
            "the arguments of a call must be plain data (None, bool, int, float, complex, str, bytes, list, tuple, "
            "dict, set): change the task's input generator"
        ) from error
    return HEADER.pack(len(body)) + body


def encode_args(args: Args) -> bytes:
    """The frame of one call."""
    return encode_frame(tuple(args))


def decode(data: bytes) -> Any:
    """The plain value in `data`, all of it; raises BadFrame for anything else."""
    reader = _Reader(data)
    try:
        value = reader.read(0)
    except (struct.error, IndexError, UnicodeDecodeError, TypeError) as error:
        raise BadFrame(f"{type(error).__name__} at byte {reader.at}") from error
    if reader.at != len(data):
        raise BadFrame(f"{len(data) - reader.at} bytes after the value")
    return value


@lru_cache(maxsize=256)
def _floats(count: int) -> struct.Struct:
    return struct.Struct("<" + "xd" * count)


@lru_cache(maxsize=256)
def _ints(count: int) -> struct.Struct:
    return struct.Struct("<" + "xi" * count)


_FLOAT = struct.Struct("<d")
_INT = struct.Struct("<i")
_SHORT = struct.Struct("<H")
_COMPLEX = struct.Struct("<dd")
_RUN_MAX = 4096
"""Longest list of equal-typed numbers that is unpacked in one go (bounds the size of a cached format)."""


class _Reader:
    """A cursor over one value; every length is checked against the bytes that are there before it is used."""

    __slots__ = ("at", "containers", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.containers = 0

    def read(self, depth: int) -> Any:
        tag = self.data[self.at]
        self.at += 1
        method = _READERS.get(tag)
        if method is None:
            raise BadFrame(f"tag {tag} at byte {self.at - 1}")
        return method(self, depth)

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise BadFrame(f"{count} bytes announced at byte {self.at}, fewer are there")
        part = self.data[self.at : end]
        self.at = end
        return part

    def number(self, layout: struct.Struct) -> Any:
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return value

    def big_int(self, _depth: int) -> int:
        count = self.number(_INT)
        digits = self.take(2 * abs(count))
        if count == 0 or digits[-2:] == b"\0\0" or any(high & 0x80 for high in digits[1::2]):
            raise BadFrame("an integer that is not in normal form")
        value = _from_digits(digits)
        return -value if count < 0 else value

    def complex_number(self, _depth: int) -> complex:
        real, imaginary = _COMPLEX.unpack(self.take(_COMPLEX.size))
        return complex(real, imaginary)

    def text(self, _depth: int) -> str:
        return self.take(self.number(_INT)).decode("utf-8", "surrogatepass")

    def items(self, depth: int) -> list[Any]:
        count = self.number(_INT)
        self.enter(depth)
        if count < 0 or count > len(self.data) - self.at:
            raise BadFrame(f"{count} items announced at byte {self.at}, fewer are there")
        if 4 <= count <= _RUN_MAX:
            tag = self.data[self.at]
            if tag == ord("g") and self.data[self.at : self.at + 9 * count : 9] == b"g" * count:
                return self.run(_floats(count))
            if tag == ord("i") and self.data[self.at : self.at + 5 * count : 5] == b"i" * count:
                return self.run(_ints(count))
        return [self.read(depth + 1) for _ in range(count)]

    def run(self, layout: struct.Struct) -> list[Any]:
        values = list(layout.unpack_from(self.data, self.at))
        self.at += layout.size
        return values

    def enter(self, depth: int) -> None:
        self.containers += 1
        if depth >= MAX_DEPTH:
            raise TooDeep(f"nested deeper than {MAX_DEPTH}")
        if self.containers > MAX_CONTAINERS:
            raise TooDeep(f"more than {MAX_CONTAINERS} containers")

    def mapping(self, depth: int) -> dict[Any, Any]:
        self.enter(depth)
        keys, values = [], []
        while self.data[self.at] != ord("0"):
            keys.append(self.read(depth + 1))
            values.append(self.read(depth + 1))
        self.at += 1
        return dict(zip(_without_collisions(keys), values, strict=True))


def _without_collisions(keys: list[Any]) -> list[Any]:
    """`keys`, unless many share a hash: building a table of 100,000 such keys would take minutes."""
    if len(keys) - len(set(map(hash, keys))) > MAX_COLLISIONS:
        raise BadFrame("keys that share a hash")
    return keys


def _from_digits(digits: bytes) -> int:
    """An integer from little-endian 15-bit digits, by halves: linear work per level, so no quadratic bomb."""
    if len(digits) <= 64:
        value = 0
        for at in range(len(digits) - 2, -2, -2):
            value = value << 15 | digits[at] | digits[at + 1] << 8
        return value
    half = len(digits) // 4 * 2
    return _from_digits(digits[:half]) | _from_digits(digits[half:]) << (half // 2 * 15)


_READERS: dict[int, Callable[[_Reader, int], Any]] = {
    ord("N"): lambda reader, depth: None,
    ord("T"): lambda reader, depth: True,
    ord("F"): lambda reader, depth: False,
    ord("i"): lambda reader, depth: reader.number(_INT),
    ord("l"): _Reader.big_int,
    ord("g"): lambda reader, depth: reader.number(_FLOAT),
    ord("y"): _Reader.complex_number,
    ord("s"): lambda reader, depth: reader.take(reader.number(_INT)),
    ord("u"): _Reader.text,
    ord("["): _Reader.items,
    ord("("): lambda reader, depth: tuple(reader.items(depth)),
    ord("{"): _Reader.mapping,
    ord("<"): lambda reader, depth: set(_without_collisions(reader.items(depth))),
    ord(">"): lambda reader, depth: frozenset(_without_collisions(reader.items(depth))),
}
