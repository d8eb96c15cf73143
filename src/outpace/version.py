"""The version, in one place: the package, its metadata and every run's record read it from here."""

__version__ = "0.1.0"
