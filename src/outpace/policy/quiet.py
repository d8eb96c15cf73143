"""Keeps transformers and PEFT from writing progress bars, load notes and deprecations between our own lines."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence progress bars, log lines below errors and FutureWarnings (one library using another's old names)."""
    from transformers.utils import logging

    level, had_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()
