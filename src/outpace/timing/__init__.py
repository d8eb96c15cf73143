"""How fast a program is beside a reference: paired, interleaved, from the kernel's CPU clock, with its uncertainty.

`measure_group` runs the schedule over opened instances; `estimate` is the arithmetic behind it. Neither starts a
process, reads a clock or believes what a program says about time: instances come from a sandbox, charges with them.
"""

from outpace.timing.caches import eviction_bytes, largest_cache_bytes
from outpace.timing.estimate import ProcessReadings, estimate, estimate_over_tests
from outpace.timing.schedule import measure_group, null_source
from outpace.timing.settings import TimingSettings

__all__ = [
    "ProcessReadings",
    "TimingSettings",
    "estimate",
    "estimate_over_tests",
    "eviction_bytes",
    "largest_cache_bytes",
    "measure_group",
    "null_source",
]
