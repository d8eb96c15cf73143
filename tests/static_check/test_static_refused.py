"""What a pure-Python answer has no use for is refused, however it is spelled."""

import pytest

from outpace.static_check import check

REFUSED = [
    # modules
    ("import numpy", "module:numpy"),
    ("import os.path", "module:os"),
    ("import math, ctypes", "module:ctypes"),
    ("from concurrent.futures import ThreadPoolExecutor", "module:concurrent"),
    ("from . import x", "module:."),
    ("from .. import math", "module:."),
    ("import _thread", "module:_thread"),
    ("import posix", "module:posix"),
    ("import time", "module:time"),
    ("import json._something", "module:json._something"),
    ("def f():\n    import socket", "module:socket"),
    ("try:\n    import numpy as np\nexcept ImportError:\n    np = None", "module:numpy"),
    ("class A:\n    import gc", "module:gc"),
    ("if False:\n    import signal", "module:signal"),
    ("import ｏｓ", "module:os"),  # full-width letters are normalised by Python
    # built-ins
    ("eval('1')", "call:eval"),
    ("ｅｖａｌ('1')", "call:eval"),
    ("𝓮𝔁𝓮𝓬('1')", "call:exec"),
    ("f = exec", "call:exec"),
    ("list(map(eval, ['1']))", "call:eval"),
    ("def f(x, g=compile): return g", "call:compile"),
    ("@eval\ndef f(): pass", "call:eval"),
    ("def f(x: exec('1')): pass", "call:exec"),
    ("def f() -> print(open('x')): pass", "call:open"),
    ("x = f'{__import__(\"os\")}'", "call:__import__"),
    ("lambda: __builtins__", "call:__builtins__"),
    ("__loader__.load_module('os')", "call:__loader__"),
    ("globals()['__builtins__']", "call:globals"),
    ("globals()['__built' + 'ins__']", "call:globals"),
    ("def f(k): return globals()[k]", "call:globals"),
    ("globals().update(x=1)", "call:globals"),
    ("g = globals", "call:globals"),
    ("list(map(vars, [1]))", "call:vars"),
    ("vars()['__builtins__']", "call:vars"),
    ("import random\nvars(random)", "call:vars"),
    ("vars(int)", "call:vars"),
    ("locals()['__builtins__']", "call:locals"),
    ("breakpoint()", "call:breakpoint"),
    ("for eval in (): pass\neval('1')", "call:eval"),  # the loop binds nothing, so the built-in is called
    ("eval('1')\neval = 3", "call:eval"),
    ("eval = 3\ndel eval\neval('1')", "call:eval"),
    ("class A:\n    if 0: eval = 1\n    x = eval('1')", "call:eval"),
    ("if 0:\n    def eval(x): pass\neval('1')", "call:eval"),
    # attributes
    ("import random\nrandom._os", "attribute:random._os"),
    ("import random as r\nr._os.system('x')", "attribute:random._os"),
    ("import random\nr = random\nr._os", "attribute:random._os"),
    ("import random\ndef f(m=random): return m._os", "attribute:random._os"),
    ("import random, math\nfor m in (random, math): m._os", "attribute:random._os"),
    ("import random\nms = [random]\nms[0]._os", "attribute:random._os"),
    ("import random\nd = {'a': random}\nd['a']._os", "attribute:random._os"),
    ("import random\n(random if 1 else 2)._os", "attribute:random._os"),
    ("import random\n(m := random)._os", "attribute:random._os"),
    ("import random\na, b = random, 1\na._os", "attribute:random._os"),
    ("import statistics\nstatistics.sys", "attribute:statistics.sys"),
    ("import dataclasses\ndataclasses.inspect", "attribute:dataclasses.inspect"),
    ("import json\njson.decoder.scanner", "attribute:json.decoder.scanner"),
    ("from random import _os", "attribute:random._os"),
    ("from statistics import sys", "attribute:statistics.sys"),
    ("from sys import modules as m", "attribute:sys.modules"),
    ("import sys\nsys._getframe(1)", "attribute:sys._getframe"),
    ("import sys\nsys.settrace(print)", "attribute:sys.settrace"),
    ("import sys\nsys.exit(0)", "attribute:sys.exit"),
    ("from sys import *", "attribute:sys.*"),
    ("from io import *", "attribute:io.*"),
    ("import io\nio.open('x')", "attribute:io.open"),
    ("from io import FileIO", "attribute:io.FileIO"),
    ("from types import FunctionType", "attribute:types.FunctionType"),
    ("import typing\ntyping.get_type_hints(f)", "attribute:typing.get_type_hints"),
    ("().__class__.__base__", "attribute:__base__"),
    ("[].__class__.__mro__[1].__subclasses__()", "attribute:__subclasses__"),
    ("f.__globals__", "attribute:__globals__"),
    ("len.__self__", "attribute:__self__"),
    ("f.__code__ = g.__code__", "attribute:__code__"),
    ("f.__closure__[0].cell_contents", "attribute:__closure__"),
    ("x.__reduce_ex__(2)", "attribute:__reduce_ex__"),
    ("x.__class__ = int", "attribute:__class__"),
    ("f().__dict__", "attribute:__dict__"),
    ("type.__dict__['mro']", "attribute:__dict__"),
    ("import random\nr = random\nr.__dict__", "attribute:__dict__"),
    ("__import__('time').__dict__.update(x=1)", "attribute:__dict__"),
    ("g.gi_frame.f_back", "attribute:f_back"),
    ("try: 1\nexcept E as e: e.__traceback__", "attribute:__traceback__"),
    ("match x:\n    case object(__subclasses__=s): pass", "attribute:__subclasses__"),
    ("def f(): return g()._os", "attribute:_os"),
    ("type(x).mro()", "attribute:mro"),
    # names of attributes as text
    ("getattr(x, '__globals__')", "attribute:__globals__"),
    ("getattr(x, '__glo' + 'bals__')", "attribute:__globals__"),
    ("getattr(x, ''.join(['__glo', 'bals__']))", "attribute:__globals__"),
    ("getattr(x, '__slabolg__'[::-1])", "attribute:__globals__"),
    ("n = '__globals__'\ngetattr(x, n)", "attribute:__globals__"),
    ("for n in ('a', '__globals__'): getattr(x, n)", "attribute:__globals__"),
    ("getattr(x, f'__{\"globals\"}__')", "attribute:__globals__"),
    ("getattr(x, '__GLOBALS__'.lower())", "attribute:__globals__"),
    ("getattr(x, chr(95) + chr(95) + 'globals__')", "attribute:__globals__"),
    ("getattr(x, ''.join(map(chr, [95, 95])))", "call:getattr"),
    ("def f(n): return getattr([], n)", "call:getattr"),
    ("g = getattr", "call:getattr"),
    ("import random\ngetattr(random, '_os')", "attribute:random._os"),
    ("import random\ndef f(n): return getattr(random, 'x' + n)", "call:getattr"),
    ("object.__getattribute__(x, '__globals__')", "attribute:__globals__"),
    ("import operator\noperator.attrgetter('a.__globals__')(f)", "attribute:__globals__"),
    ("from operator import attrgetter as g\ndef f(n): return g(n)", "call:operator.attrgetter"),
    ("self = []\ndef f(n): return getattr(self, n)", "call:getattr"),
    # patches
    ("import time\ntime.perf_counter = lambda: 0.0", "patch:time.perf_counter"),
    ("import math as m\ndel m.sqrt", "patch:math.sqrt"),
    ("import math\nmath.pi += 1", "patch:math.pi"),
    ("import math\nfor math.pi in [1]: pass", "patch:math.pi"),
    ("from fractions import Fraction\nFraction.__eq__ = lambda a, b: True", "patch:fractions.Fraction.__eq__"),
    ("import sys\nsys.stdout = None", "patch:sys.stdout"),
    ("import math\nsetattr(math, 'sqrt', abs)", "patch:math.sqrt"),
    ("import math\ndelattr(math, 'sqrt')", "patch:math.sqrt"),
    ("import math\ndef f(n): setattr(math, n, abs)", "patch:math.*"),
    ("import json\njson.decoder.BACKSLASH['n'] = 'x'", "patch:json.decoder.BACKSLASH[]"),
    # text
    ("x = 1 # \u202e\u2066", "unicode:bidi"),
    ("# -*- coding: utf-7 -*-\nx = 1", "encoding:utf-7"),
    ("\n# vim: set fileencoding=rot13 :\nx = 1", "encoding:rot13"),
    # the main guard is dead only while nobody touches __name__
    ("__name__ = '__main__'\nif __name__ == '__main__':\n    import os", "module:os"),
    ("if __name__ == '__main__':\n    pass\nelse:\n    import os", "module:os"),
    ("if __name__ != '__main__':\n    import os", "module:os"),
]


@pytest.mark.parametrize(("source", "reason"), REFUSED)
def test_it_is_refused_with_its_reason(source: str, reason: str) -> None:
    report = check(source, "f")
    assert report.parses, report.syntax_error
    assert reason in [violation.reason for violation in report.violations]


def test_a_violation_names_its_line() -> None:
    (violation,) = check("x = 1\n\nimport os\n", "f").violations
    assert (violation.reason, violation.line) == ("module:os", 3)
