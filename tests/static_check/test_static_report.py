"""The report is total, deterministic, and each family of rules can be switched off."""

import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.errors import ConfigError
from outpace.static_check import ALLOWED_MODULES, ARTICLE, DEFAULT, check, rules_for

FRAGMENTS = st.sampled_from(
    [
        *("def", "class", "import", "from", "eval", "_os", "__class__", "getattr", "lambda", "match", "case", "del"),
        *("global", "x", "self", "await", "if", "\n    ", "\t", "f'", ":=", "->", "random", "1"),
        *"()[]{}:=.,@*'\"#\n\0\ud800\u202e\ufefféａ",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(FRAGMENTS, max_size=40).map(" ".join)))
def test_any_text_gives_the_same_report_twice(source: str) -> None:
    assert check(source, "f") == check(source, "f")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = 1\0", "NUL"),
        ("'\ud800'", "surrogate"),
        ("x = " + "+".join(["1"] * 20000), "nested"),
        ("x = " + "(" * 150 + "1" + ")" * 150 + "[" * 300, "parenthes"),
        ("x = " + "-" * 60000 + "1", "nested"),
        ("if 1: pass\n" + "elif 1: pass\n" * 3000, "nested"),
        ("#" * 70000, "70000 bytes"),
        ("def f():\n\u00a0   return 1", "U+00A0"),
        ("return 1", "outside function"),
        ("def f(x, x): pass", "duplicate"),
        ("x = 0777", "leading zeros"),
        ("def f(:", "invalid syntax"),
    ],
)
def test_what_cannot_be_parsed_is_a_syntax_error_with_a_sentence(source: str, says: str) -> None:
    report = check(source, "f")
    assert not report.parses
    assert says in (report.syntax_error or "")


def test_no_nesting_kills_the_process() -> None:
    program = (
        "import threading; from outpace.static_check import check\n"
        "deep = ['-', 'not ', 'lambda:', '1 if 1 else ', '[', '{1:', 'f(', 'x=', 'await ', '~', 'a.', 'a and ']\n"
        "run = lambda: [check(part * (60000 // len(part)) + '1', 'f') for part in deep]\n"
        "thread = threading.Thread(target=run); thread.start(); thread.join()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr


def test_a_source_that_parses_says_whether_it_defines_the_entry_point() -> None:
    assert check("def f(): return 1", "f").defines_entry_point
    assert check("class S:\n    def f(self): return 1", "S.f").defines_entry_point
    assert not check("def f(): ...", "f").defines_entry_point
    assert not check("def g(): return 1", "f").defines_entry_point


@pytest.mark.parametrize(
    ("family", "attack"),
    [
        ("imports", "import ctypes"),
        ("builtins", "exec('import ctypes')"),
        ("attributes", "import random\nrandom._os.system('id')"),
        ("patches", "import math\nmath.sqrt = abs"),
        ("text", "x = 1 # \u202e"),
    ],
)
def test_each_family_stops_its_attack_and_lets_it_pass_when_off(family: str, attack: str) -> None:
    assert not check(attack, "f").is_compliant
    assert check(attack, "f", dataclasses.replace(DEFAULT, **{family: False})).is_compliant


def test_the_article_preset_looks_at_imports_alone() -> None:
    assert not check("import numpy", "f", ARTICLE).is_compliant
    assert check("import ctypes\nexec('import numpy')\nimport time\ntime.time = None", "f", ARTICLE).is_compliant


def test_a_tasks_own_list_takes_the_place_of_the_default() -> None:
    rules = rules_for(frozenset({"math", "numpy"}))
    assert check("import math, numpy as np\nnp.linalg.norm(1)", "f", rules).is_compliant
    assert [v.reason for v in check("import random", "f", rules).violations] == ["module:random"]
    assert [v.reason for v in check("import numpy\nnumpy.os", "f", rules).violations] == ["attribute:numpy.os"]
    assert rules_for(None) is DEFAULT


def test_an_unknown_preset_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'strict' is not known; use one of default, article"):
        rules_for(None, "strict")


def test_nothing_on_the_allow_list_leaves_the_interpreter() -> None:
    leaves = "os sys.modules ctypes subprocess threading multiprocessing socket signal gc inspect importlib pickle time"
    assert not ALLOWED_MODULES & set(leaves.split())


@pytest.mark.parametrize("name", ["a" * 5000, "é", "tool", "decoder.x.y", "__main__"])
def test_any_name_of_a_submodule_can_be_asked_for(name: str) -> None:
    assert check(f"import json.{name}\nimport json\njson.{name}.x\nfrom json.{name} import *", "f").parses


def test_work_stays_bounded_on_names_that_refer_to_each_other() -> None:
    names = [f"n{i}" for i in range(40)]
    pairs = list(zip(names, reversed(names), strict=True))
    source = "".join(f"{a} = {b} if x else {c}\n" for a in names for b, c in pairs)
    assert check(source + "n0._os", "f").parses
