"""Ctrl-C and SIGTERM: the first asks the run to stop where it can be resumed, the second stops it at once.

While weights are trained, the first signal lets the step end and a checkpoint be written. Elsewhere there is nothing
to save, so it stops at once. A checkpoint that is being written is always finished, whatever the number of signals;
one that could not be is recognised by its missing mark.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """The user or the system asked the run to stop; what is on disk can be resumed."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Interrupts:
    """Catches both signals inside `with`, in the main thread; elsewhere it does nothing."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.requested: int | None = None
        """The first signal's number; None: nobody asked."""
        self._say = say
        self._patient = False
        self._writing = False
        self._again: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(self, *exc_info: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    @contextlib.contextmanager
    def until_step_ends(self) -> Iterator[None]:
        """Inside, the first signal only sets `requested`; the caller stops at the next step boundary."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    def begin_writing(self) -> None:
        """From now on no signal interrupts: a checkpoint is being written."""
        self._writing = True

    def end_writing(self) -> None:
        """The checkpoint is on disk; a second signal that came meanwhile takes effect."""
        self._writing = False
        if self._again is not None:
            raise Interrupted(self._again)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        is_first = self.requested is None
        self.requested = self.requested or number
        if self._writing:
            self._again = None if is_first else number
        elif is_first and self._patient:
            self._say("stopping after this step, with a checkpoint; once more stops at once")
        else:
            raise Interrupted(number)
