"""Every error outpace raises on purpose.

    OutpaceError                 exit code
    ├── UserError                    2      the input is wrong; the message names the cause and the remedy
    │   ├── ConfigError (ValueError)            a recipe, a setting or a command-line value
    │   ├── TaskError (ValueError)              a task file or a task id
    │   ├── ModelError (ValueError)             a model folder, checkpoint or tokenizer
    │   ├── RewardError (ValueError)            a reward's name, options, signature or returned list
    │   └── RunFolderError (OSError)            a run folder that cannot be read, written or resumed
    └── InfrastructureError          3      we failed; a sample hit by it is scored None, never a number
        ├── SandboxUnavailable (RuntimeError)   isolation cannot be had, or a child could not be started
        ├── ScorerDied (RuntimeError)           a scoring process ended with a call in flight
        ├── JudgeUnavailable (ConnectionError)  the LLM judge gave no usable answer
        └── TrainingDiverged (ArithmeticError)  a loss, gradient or log-probability is not finite

A candidate's own failure is never an exception: it is an `outpace.schema.Outcome`.
Each error pickles, so that it can cross a process boundary.
"""


class OutpaceError(Exception):
    """Base of everything outpace raises on purpose; `exit_code` is what the command line returns for it."""

    exit_code = 3


class UserError(OutpaceError):
    """The user's input is wrong: one sentence that names the cause and the remedy."""

    exit_code = 2


class ConfigError(UserError, ValueError):
    """A recipe, a setting or a command-line value cannot be used."""


class TaskError(UserError, ValueError):
    """A task file or a task id cannot be used."""


class ModelError(UserError, ValueError):
    """A model folder, checkpoint or tokenizer cannot be used."""


class RewardError(UserError, ValueError):
    """A reward's name, options, signature or returned list cannot be used."""


class RunFolderError(UserError, OSError):
    """A run folder cannot be read, written or resumed."""


class InfrastructureError(OutpaceError):
    """We failed, not the candidate; the sample hit by it has no reward."""


class SandboxUnavailable(InfrastructureError, RuntimeError):
    """Isolation at the asked level cannot be had here, or a child could not be started."""


class ScorerDied(InfrastructureError, RuntimeError):
    """A scoring process ended while a call was in flight, also after its one retry."""


class JudgeUnavailable(InfrastructureError, ConnectionError):
    """The LLM judge gave no usable answer within its limits."""


class TrainingDiverged(InfrastructureError, ArithmeticError):
    """A loss, gradient or log-probability became NaN or infinite."""
