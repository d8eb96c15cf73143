"""How numbers are written for people, the same in the terminal, in Markdown and in HTML."""

from outpace.evaluate import Difference, Measure, Unit

ABSENT = "–"
"""What stands where there is no number."""


def show(value: float | None, unit: Unit) -> str:
    """A value with its unit: `41.2 %`, `2.84x`, `394`, `3.2`."""
    if value is None:
        return ABSENT
    match unit:
        case Unit.SHARE:
            return f"{value * 100:.1f} %"
        case Unit.RATIO:
            return f"{value:.2f}x"
        case Unit.TOKENS:
            return f"{value:.0f}"
        case Unit.PROGRAMS:
            return f"{value:.1f}"


def show_interval(low: float | None, high: float | None, unit: Unit) -> str:
    """Both ends without repeating the unit: `33.1–49.8`; empty when there is no interval."""
    if low is None or high is None:
        return ""
    return f"{_bare(low, unit)}–{_bare(high, unit)}"


def show_measure(measure: Measure) -> str:
    """Value and interval: `41.2 % (33.1–49.8)`."""
    interval = show_interval(measure.low, measure.high, measure.unit)
    return show(measure.value, measure.unit) + (f" ({interval})" if interval else "")


def show_change(row: Difference) -> str:
    """Signed difference: `+36.9` (in points of per cent), `+1.84x`, `−324`."""
    if row.difference is None:
        return ABSENT
    return _signed(row.difference, row.after.unit) + ("x" if row.after.unit is Unit.RATIO else "")


def show_change_interval(row: Difference) -> str:
    """Both ends of the difference's interval: `+25.1 to +47.0`; empty when there is none."""
    if row.low is None or row.high is None:
        return ""
    return f"{_signed(row.low, row.after.unit)} to {_signed(row.high, row.after.unit)}"


def show_duration(seconds: float | None) -> str:
    """`0.8 s`, `47 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds is None:
        return ABSENT
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def show_bytes(size: int | None) -> str:
    """`512 MB`, `13.76 GB`, in powers of 1000."""
    if size is None:
        return ABSENT
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def show_plain(value: float) -> str:
    """A number of no particular unit in at most four significant digits: `0.0312`, `12.5`, `1,234`, `3e-06`."""
    if value == int(value) and abs(value) < 1e6:
        return f"{value:,.0f}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _digits(unit: Unit) -> int:
    return {Unit.SHARE: 1, Unit.RATIO: 2, Unit.TOKENS: 0, Unit.PROGRAMS: 1}[unit]


def _bare(value: float, unit: Unit) -> str:
    return f"{value * 100 if unit is Unit.SHARE else value:.{_digits(unit)}f}"


def _signed(value: float, unit: Unit) -> str:
    text = f"{value * 100 if unit is Unit.SHARE else value:+.{_digits(unit)}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")
