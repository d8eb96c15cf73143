"""The command line: parses and calls, decides nothing.

Exit codes: 0 ok, 1 found something (a wrong program, a paying attack, a bad task), 2 bad input, 3 we failed.
"""

import sys

from outpace.errors import OutpaceError

__all__ = ["main"]


def main() -> None:
    """Entry point of the `outpace` command: one sentence on stderr for every error that we know of."""
    from outpace.cli.app import app

    try:
        app()
    except OutpaceError as error:
        sys.exit(_say(str(error), error.exit_code))
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; nothing to say and nobody to say it to
        sys.exit(0)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        sys.exit(_say(f"{error.strerror or error}{where}", 3))
    except KeyboardInterrupt:
        sys.exit(_say("interrupted", 130))


def _say(message: str, code: int) -> int:
    print(f"outpace: {message}", file=sys.stderr)  # noqa: T201 - the one place where errors reach a person
    return code
