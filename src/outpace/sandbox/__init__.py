"""Runs untrusted source in fresh, isolated, timed child processes.

`ProcessSandbox` is the engine, `pool.Pool` spreads it over pinned scoring processes, `detect` says what isolation
this machine grants. The parent judges, the child only computes: see `docs/sandbox.md` for what is stopped and what
is not.
"""

from outpace.sandbox.instance import ProcessInstance
from outpace.sandbox.process import ProcessSandbox, detect
from outpace.sandbox.settings import Layer, SandboxSettings

__all__ = ["Layer", "ProcessInstance", "ProcessSandbox", "SandboxSettings", "detect"]
