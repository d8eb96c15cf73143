"""What runs in a fresh child: load one candidate, answer calls, trust nobody and be trusted by nobody.

Standard library only, nothing of ours. The parent treats every byte written here as hostile; the checks below
only make honest failures readable. One frame comes in per call (length, marshal version 2), one goes out (length,
kind, number of the frame it answers, marshal version 2). Values are encoded, and the candidate's objects freed,
before the reply is sent: their cost belongs to the call.
"""

import array
import itertools
import marshal
import os
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

LOADED, VALUE, EXCEPTION, EXIT, MEMORY, WRONG_TYPE, TOO_LARGE, NO_ENTRY, NO_PARSE = b"LVEXMTBNS"
FILE_NAME, MODULE_NAME = "<candidate>", "candidate"
HEADER, REPLY_HEADER = struct.Struct("<I"), struct.Struct("<IBI")
_ATOMS = frozenset({type(None), bool, int, float, str, bytes, complex})
_SEQUENCES = frozenset({list, tuple, set, frozenset})
_MAPPINGS = frozenset({dict, Counter, OrderedDict, defaultdict})
_MAX_DEPTH = 100


class _NotPlain(Exception):
    pass


class _NoParse(Exception):
    pass


def read_exactly(descriptor: int, count: int) -> bytes:
    """`count` bytes; ends the process when the parent has gone."""
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_frame(descriptor: int) -> Any:
    """The next frame of the parent, decoded."""
    (length,) = HEADER.unpack(read_exactly(descriptor, 4))
    return marshal.loads(read_exactly(descriptor, length))  # noqa: S302 - the parent is trusted


def write_reply(descriptor: int, number: int, kind: int, body: bytes) -> None:
    """The reply to frame `number`."""
    data = memoryview(REPLY_HEADER.pack(len(body), kind, number) + body)
    while data:
        data = data[os.write(descriptor, data) :]


def serve(descriptor: int, lock: Callable[[int, int], None]) -> None:
    """Load and answer until the parent closes the channel or kills this process.

    The first frame is `(source, entry point, consume iterators, reply bytes, memory bytes, cpu seconds)`;
    `lock(memory_bytes, cpu_s)` gives up every right for good before the source is compiled.
    """
    source, entry_point, consume, reply_bytes, memory_bytes, cpu_s = read_frame(descriptor)
    lock(memory_bytes, cpu_s)
    namespace: list[Any] = []
    write_reply(descriptor, 0, *attempt(load, source, entry_point, namespace))
    for number in itertools.count(1):
        write_reply(descriptor, number, *attempt(call, namespace[0], read_frame(descriptor), consume, reply_bytes))


def load(source: str, entry_point: str, found: list[Any]) -> tuple[int, bytes]:
    """Run `source` and put its entry point into `found`."""
    found.append(find(execute(source), entry_point))
    return (LOADED, b"") if callable(found[0]) else (NO_ENTRY, b"")


def call(entry: Any, args: Any, consume: bool, reply_bytes: int) -> tuple[int, bytes]:
    """One call of the entry point; its result as bytes."""
    value = entry(*args)
    if consume and hasattr(type(value), "__next__") and hasattr(type(value), "__iter__"):
        value = list(value)
    body = marshal.dumps(plain(value, 0), 2)
    return (VALUE, body) if len(body) < reply_bytes else (TOO_LARGE, b"")


def execute(source: str) -> ModuleType:
    """A module that ran `source`; its `__name__` is never `__main__`."""
    module = ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    try:
        code = compile(source, FILE_NAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _NoParse(f"{error.msg} (line {error.lineno})") from None
    except (ValueError, OverflowError, RecursionError) as error:  # null bytes, lone surrogates, too deeply nested
        raise _NoParse(str(error)) from None
    exec(code, module.__dict__)  # noqa: S102 - the point of it all
    return module


def find(module: ModuleType, entry_point: str) -> Any:
    """The entry point, None when there is none; `Solution.method` is looked up on a new `Solution()`."""
    target: Any = module
    names = entry_point.split(".")
    for position, name in enumerate(names):
        target = getattr(target, name, None)
        if isinstance(target, type) and position < len(names) - 1:
            target = target()
    return target


def attempt(act: Callable[..., tuple[int, bytes]], *given: Any) -> tuple[int, bytes]:
    """The reply of `act(*given)`, or the reply that says how it failed."""
    try:
        return act(*given)
    except MemoryError:
        return MEMORY, b""
    except _NotPlain as error:
        return WRONG_TYPE, _text(str(error))
    except SystemExit:
        return EXIT, b""
    except _NoParse as error:
        return NO_PARSE, _text(str(error))
    except BaseException as error:
        return EXCEPTION, describe(error)


def plain(value: Any, depth: int) -> Any:
    """`value` when it is plain data of exact types all the way down, else _NotPlain.

    Arrays and deques become lists; counters, default and ordered dicts become dicts.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if depth >= _MAX_DEPTH:
        raise _NotPlain("nested too deeply")
    if kind in _SEQUENCES:
        if set(map(type, value)) <= _ATOMS:
            return value
        return kind([plain(item, depth + 1) for item in value])
    if kind in _MAPPINGS:
        return {plain(key, depth + 1): plain(item, depth + 1) for key, item in value.items()}
    if kind is array.array:
        return value.tolist()
    if kind is deque:
        return [plain(item, depth + 1) for item in value]
    raise _NotPlain(kind.__name__)


def describe(error: BaseException) -> bytes:
    """The exception's class, message and last line of the candidate, as text for people, and its errno."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE_NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        message = str(error)[:1000]
    except BaseException:
        message = "(its message cannot be shown)"
    number = error.errno if isinstance(error, OSError) and type(error.errno) is int else 0
    return marshal.dumps((type(error).__name__[:100], message, line, number), 2)


def _text(text: str) -> bytes:
    return marshal.dumps(text[:1000], 2)
