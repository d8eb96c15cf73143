"""The built-in tasks, one module per family; each reference is what a beginner would write, correct and slow.

The oracle of a task takes another way than its reference, so that a fault in one shows against the other.
Correctness inputs start with edge cases; timing inputs have one fixed size and fresh values.
"""
