"""Honest programs are not punished for what they merely resemble."""

import pytest

from outpace.static_check import check

ALLOWED = [
    "import math, heapq, statistics, operator, itertools, functools, collections, array, bisect",
    "import decimal, unicodedata, json, re, random, copy, string, dataclasses, enum, hashlib, struct, cmath",
    "from collections.abc import Iterable\nfrom typing import *\nfrom math import *\nfrom itertools import *",
    "from json.decoder import JSONDecodeError\nimport json\n"
    "try: json.loads('')\nexcept json.decoder.JSONDecodeError: pass",
    "from __future__ import annotations",
    "from math import no_such_name",  # an ImportError when it runs, no crime
    "import sys\nsys.setrecursionlimit(10000)\nprint(sys.maxsize, file=sys.stderr)\nsys.stdout.write('x')",
    "import sys\ninput = sys.stdin.readline\nx = sys.float_info.epsilon",
    "import re\np = re.compile('a')",
    "import decimal\ndecimal.getcontext().prec = 50\nctx = decimal.getcontext()\nctx.prec = 10",
    "import random\nrng = random.Random(1)\nrng.extra = 2",
    "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()): print(1)",
    '"""import numpy; eval, exec, os.system, __globals__"""\n# import ctypes\nx = "__import__(\'os\')"',
    "leak = '{0.__class__.__mro__[1].__subclasses__}'.format([])",
    "x = input()",
    # names of built-ins used as one's own
    "def f(s):\n    open = close = 0\n    for c in s:\n        open += c == '('\n    return open",
    "def f(eval, exec): return eval + exec",
    "def compile(x): return x\ndef f(): return compile(1)",
    "from re import compile\np = compile('a')",
    "vars = {'x': 1}\ny = vars['x']",
    "def f(a, b): return '{a}'.format(**locals())",
    "xs = [open for open in range(3)]",
    "if 'cache' not in globals(): cache = {}\nx = globals().get('cache')\nglobals()['cache'] = {}",
    "class A: pass\na = A()\nprint(vars(a), a.__dict__)",
    # classes
    "class P:\n    __slots__ = ('x',)\n"
    "    def __init__(self, x): self.x = x\n    def __lt__(self, o): return 1\n"
    "    def __repr__(self): return f'{self.__class__.__name__}({self.x})'\n    def _p(self): return self._q",
    "class A:\n    def __init__(self, **k): self.__dict__.update(k)\n"
    "    def __eq__(self, other): return vars(self) == vars(other)",
    "class B(dict):\n    def __setattr__(self, n, v): super().__setattr__(n, v)\n"
    "    def __getattr__(self, n): return self[n]\n    def g(self, n): return getattr(self, n)",
    "class C:\n    def visit(self, kind): return getattr(self, f'visit_{kind}')",
    "def dispatch(obj, kind): return getattr(obj, 'do_' + kind)()",
    "import operator\nfor n in ('add', 'mul'): getattr(operator, n)(1, 2)",
    "from operator import attrgetter\nxs.sort(key=attrgetter('a', 'b.c'))",
    "if hasattr(x, '__iter__') and getattr(x, 'size', 0): pass",
    "import functools\ndef d(f):\n"
    "    @functools.wraps(f)\n    def w(*a): return f(*a)\n    w.__name__ = f.__name__\n    w.cache = {}\n"
    "    return w",
    "from dataclasses import dataclass, field\n@dataclass(frozen=True)\nclass D:\n    x: int\n"
    "    def __post_init__(self): object.__setattr__(self, 'y', 1)",
    "from enum import Enum\nclass E(Enum):\n    A = 1\nprint(E.__members__)",
    "string = 'abc'\nfor copy in string: copy.x = 1",
    # a name imported in one function is another name in the next
    "def f():\n    import copy\n    return copy.copy\ndef g(copy):\n    copy.value = 1",
    # never run
    "def f(): pass\nif __name__ == '__main__':\n"
    "    import time, doctest\n    doctest.testmod()\n    print(eval(input()))",
    "if '__main__' == __name__:\n    import sys\n    sys.exit(f())",
    # text
    "# -*- coding: utf-8 -*-\nx = 1",
    "x = 'שלום'  # right-to-left text without control characters",
    "def f(h):\n    if h < 0: exit()",
]


@pytest.mark.parametrize("source", ALLOWED)
def test_it_is_allowed(source: str) -> None:
    report = check(source, "f")
    assert report.parses, report.syntax_error
    assert not report.violations
