"""The kernel's defences, one file each: standard library only, because they run inside the zygote and its children.

Each file says what it stops and what it does not. `probe.py` tries the forbidden act under each in a throw-away
child, so that a layer counts only when it was seen to work. Nothing here imports another part of outpace.
"""
