"""Charts as small SVG, drawn by hand: lines over steps, bars with intervals, a before/after mark. Pure.

Colours are classes of the page's style sheet (`c0`, `c1`, ...), so one drawing serves light and dark. Each is drawn
about as wide as a phone, so that its text keeps its size when charts stand in columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from outpace.report.axes import Scale, padded, ticks
from outpace.report.curves import Line, Panel, smoothed
from outpace.report.markup import Markup, join, tag
from outpace.report.numbers import show_plain

_WIDTH, _HEIGHT = 360, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 8, 8, 22


def show_on_axis(value: float, unit: str) -> str:
    """A number beside an axis, in the panel's unit."""
    if unit == "share":
        return f"{value * 100:g} %"
    return f"{show_plain(value)}x" if unit == "ratio" else show_plain(value)


def line_chart(panel: Panel) -> Markup:
    """Lines over steps; noisy ones are drawn faintly under their moving mean. Values show when pointed at."""
    steps = [step for line in panel.lines for step in line.steps]
    values = [value for line in panel.lines for value in line.values]
    low, high = (0.0, 1.0) if panel.unit == "share" else padded(values)
    x = Scale(min(steps), max(steps), _LEFT, _WIDTH - _RIGHT)
    y = Scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    grid = [
        tag(
            "g",
            tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y(tick), y2=y(tick), class_="grid"),
            tag("text", show_on_axis(tick, panel.unit), x=_LEFT - 6, y=y(tick) + 4, class_="axis end"),
        )
        for tick in ticks(low, high)
    ]
    feet = [
        tag("text", f"{tick:.0f}", x=x(tick), y=_HEIGHT - 5, class_="axis middle")
        for tick in ticks(x.low, x.high, 5)
        if tick == int(tick)
    ]
    feet.append(tag("text", "step", x=_LEFT - 6, y=_HEIGHT - 5, class_="axis end"))
    drawn = [_line(line, number, x, y, panel.unit) for number, line in enumerate(panel.lines)]
    return _svg(_HEIGHT, panel.title, join([*grid, *feet, *drawn]))


def _line(line: Line, number: int, x: Scale, y: Scale, unit: str) -> Markup:
    colour = f"c{number % 8}"
    calm = smoothed(line.values)
    parts = [tag("polyline", points=_points(line.steps, line.values, x, y), class_=f"{colour} raw")] if calm else []
    parts.append(tag("polyline", points=_points(line.steps, calm or line.values, x, y), class_=f"{colour} line"))
    if len(line.steps) <= 200:
        parts += [
            tag(
                "circle",
                tag("title", f"{line.label}, step {step}: {show_on_axis(float(f'{value:.4g}'), unit)}"),
                cx=x(step),
                cy=y(value),
                r="5" if len(line.steps) > 1 else "3",
                class_="spot" if len(line.steps) > 1 else f"{colour} dot",
            )
            for step, value in zip(line.steps, line.values, strict=True)
        ]
    return join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar with its whisker; `style` is a class of the style sheet, `text` what stands behind the bar."""

    value: float | None
    low: float | None
    high: float | None
    style: str
    text: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BarGroup:
    """Bars under one label, such as before and after."""

    label: str
    bars: tuple[Bar, ...]


def bar_chart(groups: Sequence[BarGroup], title: str, *, high: float = 1.0, mark: float | None = None) -> Markup:
    """Horizontal bars from 0 to `high`, interval whiskers on them; `mark` draws a line, such as equal speed."""
    x = Scale(0.0, high, 0, 272)
    top, parts = 0.0, []
    for group in groups:
        parts.append(tag("text", group.label, x=0, y=top + 13, class_="label"))
        top += 20
        parts += [_bar(bar, x, top + 17 * number) for number, bar in enumerate(group.bars)]
        end = top + 17 * len(group.bars)
        if mark is not None and mark <= high:
            parts.append(tag("line", x1=x(mark), x2=x(mark), y1=top - 3, y2=end - 1, class_="mark"))
        top = end + 9
    return _svg(int(top - 5), title, join(parts))


def _bar(bar: Bar, x: Scale, top: float) -> Markup:
    parts = [tag("rect", x=0, y=top, width=x.end, height=13, rx=2, class_="track")]
    if bar.value is not None:
        parts.append(tag("rect", x=0, y=top, width=max(1.0, x(bar.value)), height=13, rx=2, class_=bar.style))
    if bar.low is not None and bar.high is not None:
        left, right, middle = x(bar.low), min(x(bar.high), x.end), top + 6.5
        path = f"M{left} {middle - 4}v8M{left} {middle}H{right}M{right} {middle - 4}v8"
        parts += [tag("path", d=path, class_="halo"), tag("path", d=path, class_="whisker")]
    parts.append(tag("text", bar.text, x=_WIDTH, y=top + 11, class_="value end"))
    return tag("g", tag("title", bar.title), *parts)


def change_mark(before: float | None, after: float | None, high: float = 1.0) -> Markup:
    """A small track with a hollow dot for before, a full one for after, and the way between."""
    x = Scale(0.0, high, 5, 115)
    parts = [tag("line", x1=5, x2=115, y1=8, y2=8, class_="rail")]
    if before is not None and after is not None and before != after:
        way = "gain" if after > before else "loss"
        parts.append(tag("line", x1=x(before), x2=x(after), y1=8, y2=8, class_=f"way {way}"))
    if before is not None:
        parts.append(tag("circle", cx=x(min(before, high)), cy=8, r=4, class_="hollow"))
    if after is not None:
        parts.append(tag("circle", cx=x(min(after, high)), cy=8, r=4, class_="full"))
    return tag("svg", *parts, viewBox="0 0 120 16", class_="change", aria_hidden="true")


def spark(values: Sequence[float], width: int = 32) -> str:
    """A line of block characters, for where nothing can be drawn: `▁▂▄▆█`; at most `width`, each a mean."""
    if not values:
        return ""
    size = -(-len(values) // width)
    means = [sum(values[i : i + size]) / len(values[i : i + size]) for i in range(0, len(values), size)]
    low, high = min(means), max(means)
    if high == low:
        return "▄" * len(means)
    return "".join("▁▂▃▄▅▆▇█"[min(7, int((mean - low) / (high - low) * 8))] for mean in means)


def _points(steps: Sequence[int], values: Sequence[float], x: Scale, y: Scale) -> str:
    return " ".join(f"{x(step):g},{y(value):g}" for step, value in zip(steps, values, strict=True))


def _svg(height: int, title: str, inside: Markup) -> Markup:
    return tag("svg", inside, viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_label=title)
