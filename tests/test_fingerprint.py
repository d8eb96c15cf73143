"""Two spellings of one program have one fingerprint; two programs have two."""

import ast

import pytest

from outpace.fingerprint import fingerprint

SAME = [
    ("def f(x):\n    return x + 1", "def f(value):\n    '''Adds one.'''\n    return (value + 1)  # one"),
    ("def f(x):\n    y = x\n    return y", "def f(x: int) -> int:\n    total: int = x\n    return total"),
    ("def f(x):\n    return x", "def f(x):\n    'first'\n    'a comment in disguise'\n    return x"),
    ("def g(a):\n    return a\ndef f(x):\n    return g(a=x)", "def h(b):\n    return b\ndef f(x):\n    return h(b=x)"),
    (
        "def f(x):\n    n = 0\n    def add():\n        nonlocal n\n        n += x\n    add()\n    return n",
        "def f(x):\n    k = 0\n    def go():\n        nonlocal k\n        k += x\n    go()\n    return k",
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_layout_comments_and_own_names_do_not_make_another_program(one: str, other: str) -> None:
    ast.parse(one)
    assert fingerprint(one, "f") == fingerprint(other, "f")


def test_another_operation_or_library_call_makes_another_program() -> None:
    sources = ["def f(x):\n    return x + 1", "def f(x):\n    return x - 1", "def f(x):\n    return max(x)"]
    assert len({fingerprint(source, "f") for source in [*sources, "def f(x):\n    return min(x)"]}) == 4


def test_a_source_too_deep_to_walk_is_its_own_fingerprint() -> None:
    deep = "x = " + "-" * 5_000 + "1"
    assert fingerprint(deep, "f") != fingerprint(deep + "1", "f")


@pytest.mark.parametrize("source", ["def (", 'def f(x):\n    return "\\d"\n', "\ud800", "x\0"])
def test_any_text_has_a_fingerprint(source: str) -> None:
    assert fingerprint(source, "f") == fingerprint(source, "f")
