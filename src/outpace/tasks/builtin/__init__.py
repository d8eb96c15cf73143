"""The built-in tasks, one module per family; each reference is what a beginner would write, correct and slow.

The oracle of a task takes another way than its reference, so that a fault in one shows against the other.
Correctness inputs start with edge cases; timing inputs have one fixed size and fresh values.
"""

from outpace.schema import Limits

LIMITS = Limits(cpu_s=1.0)
"""Bounds on a candidate's process in every built-in task. A program that never ends costs its scoring process this much
CPU time, and a training step waits for it. The references need 20 ms for all hidden tests together (matmul; all others
less than 5 ms) and less than 5 ms for a timed call. So a right program may still be 50 times slower than its reference,
and 100 times in timing, where a process that is slow has only two calls. The wall clock stays at ten times the CPU
time, for cores that are busy."""
