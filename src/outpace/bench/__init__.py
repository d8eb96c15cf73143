"""Measurements of this machine that anyone can repeat: ours beside others, in one run."""
