"""outpace: train code language models to write programs that are right, safe and fast, by running what they write."""

__version__ = "0.1.0"
