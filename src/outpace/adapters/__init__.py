"""A `Grader` inside other people's trainers: `trl`, `verl`, `verifiers`, `openenv`.

Each file translates one trainer's calling convention; what is graded and what it is worth is decided in `scoring`, so
a completion earns the same everywhere. Nothing here trains, and importing this package imports no trainer.
"""
