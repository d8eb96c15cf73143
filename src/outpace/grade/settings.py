"""Settings of grading: small frozen values; what is switched off here is a defence switched off."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from outpace.sandbox import SandboxSettings
from outpace.timing import TimingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeSettings:
    """How completions are graded.

    The last three are defences; each is on by default, and has a test that its attack pays when it is off.
    """

    lenient: bool = False
    """Accept code without a fence."""
    static_preset: str = "default"
    """Rules of the static check: `default` or `article`."""
    measure_speed: bool = True
    time_together: int = 8
    """Correct programs of a group that are timed while its other completions are still awaited, however busy the
    scoring processes are; fewer are while one is idle and the group arrives one by one; the last ones are timed when
    all have been checked. Those timed together meet the same inputs, side by side."""
    time_early: bool = True
    """Whether fewer than that are timed, too, while completions are still awaited and a worker is idle; off where what
    writes them needs the same cores."""
    seed: int | None = None
    """Seed of the hidden inputs; None draws a fresh secret for each verdict."""
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    timing: TimingSettings = field(default_factory=TimingSettings)

    enforce_static: bool = True
    """Refuse what the static check refuses; off: report it and run the source all the same."""
    fresh_inputs: bool = True
    """New values for every call; off: every call of a purpose gets the same values (caching then pays)."""
    verify_timed: bool = True
    """Judge every timed output; off: only the untimed tests are judged."""

    def switched_off(self) -> Mapping[str, bool]:
        """The defences of grading that are off, by name."""
        names = ("enforce_static", "fresh_inputs", "verify_timed")
        return {name: False for name in names if not getattr(self, name)}
