"""Programs that try to look faster than they are; each does the honest work unless it says otherwise.

They meet the sandbox and the schedule without the static check, which would refuse most of them.
"""

HONEST = """
def work(xs):
    s = 0
    for i in range(12000):
        s = (s * 31 + xs[i & 63]) % 1000003
    return s
"""

ATTACKS = {
    "leaves for another core, where the clock is read stale": """
import os
def move():
    try:
        os.sched_setaffinity(0, set(range(64)) - {os.sched_getcpu() if hasattr(os, "sched_getcpu") else 0})
    except Exception:
        pass
move()
honest = work
def work(xs):
    move()
    return honest(xs)
""",
    "computes in a thread and waits for it": """
import _thread
honest = work
def work(xs):
    out = []
    try:
        _thread.start_new_thread(lambda: out.append(honest(xs)), ())
        while not out:
            pass
    except Exception:
        return honest(xs)
    return out[0]
""",
    "keeps a thread spinning on another core": """
import _thread
def spin():
    while True:
        pass
try:
    _thread.start_new_thread(spin, ())
except Exception:
    pass
""",
    "computes in a forked process whose time is not its own": """
import os
honest = work
def work(xs):
    try:
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, str(honest(xs)).encode())
            os._exit(0)
        return int(os.read(read, 100))
    except Exception:
        return honest(xs)
""",
    "burns the processor while it is imported": """
for _ in range(1_000_000):
    pass
""",
    "fills the memory and the caches after its reply": """
import sys
ballast = bytearray(32 * 2**20)
def after(frame, event, argument):
    if event == "return" and frame.f_code.co_name == "write_frame":
        for start in range(0, len(ballast), 4096):
            ballast[start] = 1
sys.setprofile(after)
""",
    "spins after its reply while the reference runs": """
import sys
def after(frame, event, argument):
    if event == "return" and frame.f_code.co_name == "write_frame":
        for _ in range(60_000):
            pass
sys.setprofile(after)
""",
    "keeps every object so that freeing is never charged": """
kept = []
honest = work
def work(xs):
    kept.append((xs, list(xs)))
    return honest(xs)
""",
    "turns the collector on with work for later": """
import gc
honest = work
def work(xs):
    gc.enable()
    gc.set_threshold(1)
    ring = [[] for _ in range(100)]
    for item in ring:
        item.append(ring)
    return honest(xs)
""",
    "defers work to a finaliser that runs in the next call": """
honest = work
held = []
class Later:
    def __init__(self, xs):
        self.xs = xs
    def __del__(self):
        honest(self.xs)
def work(xs):
    held.clear()
    held.append(Later(xs))
    return honest(xs)
""",
    "leaves a trace function on": """
import sys
honest = work
def work(xs):
    answer = honest(xs)
    sys.settrace(lambda *given: None)
    return answer
""",
    "caches by the identity of its argument": """
honest, cache = work, {}
def work(xs):
    if id(xs) not in cache:
        cache[id(xs)] = honest(xs)
    return cache[id(xs)]
""",
    "caches by the values of its argument": """
honest, cache = work, {}
def work(xs):
    key = tuple(xs)
    if key not in cache:
        cache[key] = honest(xs)
    return cache[key]
""",
    "returns the answer of the call before": """
honest, last = work, []
def work(xs):
    if not last:
        last.append(honest(xs))
    return last[0]
""",
    "replaces every clock it can find": """
import time, sys
for module in list(sys.modules.values()):
    for name in ("perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "monotonic", "monotonic_ns",
                 "clock_gettime", "clock_gettime_ns", "thread_time", "thread_time_ns", "time", "time_ns"):
        if hasattr(module, name):
            try:
                setattr(module, name, lambda *given: 0)
            except Exception:
                pass
""",
    "sleeps through the work of others": """
import time
honest = work
def work(xs):
    time.sleep(0.003)
    return honest(xs)
""",
    "recurses until memory is short": """
import sys
sys.setrecursionlimit(10**6)
honest = work
def down(n):
    return n and down(n - 1)
def work(xs):
    answer = honest(xs)
    down(5000)
    return answer
""",
    "returns a lazy answer": """
honest = work
def work(xs):
    yield honest(xs)
""",
    "returns a list that computes when it is looked at": """
honest = work
class Lazy(list):
    def __iter__(self):
        return iter([honest(self.xs)])
def work(xs):
    lazy = Lazy()
    lazy.xs = xs
    return lazy
""",
    "answers early by writing to the channel itself": """
import os
honest = work
def work(xs):
    try:
        os.write(3, b"\\x06\\0\\0\\0Vi\\0\\0\\0\\0")
    except Exception:
        pass
    return honest(xs)
""",
    "replaces the function that sends its replies": """
import sys
for module in list(sys.modules.values()):
    if hasattr(module, "write_frame"):
        send = module.write_frame
        def twice(descriptor, kind, body=b"", send=send):
            send(descriptor, kind, body)
            for _ in range(60_000):
                pass
        module.write_frame = twice
""",
    "is right only until it is timed": """
honest, calls = work, []
def work(xs):
    calls.append(1)
    return honest(xs) if len(calls) < 2 else 0
""",
    "raises once it is timed": """
honest, calls = work, []
def work(xs):
    calls.append(1)
    if len(calls) > 2:
        raise ValueError
    return honest(xs)
""",
}

PREPARABLE = """
def table():
    t = 0
    for i in range(120_000):
        t = (t * 31 + i) % 1000003
    return t
"""
"""Work of about 10 ms that does not depend on the input, so that it can be moved to another time."""

PREPARED = {
    "never: the honest way": "def work(xs):\n    return (table() + sum(xs)) % 1000003\n",
    "at import": "t = table()\ndef work(xs):\n    return (t + sum(xs)) % 1000003\n",
    "in a default argument": "def work(xs, t=table()):\n    return (t + sum(xs)) % 1000003\n",
    "in the first call": (
        "kept = []\ndef work(xs):\n"
        "    if not kept:\n        kept.append(table())\n"
        "    return (kept[0] + sum(xs)) % 1000003\n"
    ),
    "in a cache of the library": (
        "import functools\ntable = functools.cache(table)\ndef work(xs):\n    return (table() + sum(xs)) % 1000003\n"
    ),
}
