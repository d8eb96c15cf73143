import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.report.axes import Scale, padded, ticks
from outpace.report.charts import Bar, BarGroup, bar_chart, change_mark, line_chart, spark
from outpace.report.curves import Line, Panel, panels_of_run, panels_of_runs, smoothed


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_lie_within_the_range_and_are_few(low: float, width: float) -> None:
    found = ticks(low, low + width)
    slack = width * 1e-6
    assert 1 <= len(found) <= 6
    assert all(low - slack <= tick <= low + width + slack for tick in found)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 1, [0, 0.5, 1]), (0, 60, [0, 20, 40, 60]), (0.94, 2.3, [1, 1.5, 2]), (-3, 3, [-2, 0, 2]), (5, 5, [5])],
)
def test_ticks_are_round_numbers(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_a_scale_maps_ends_to_ends_and_a_point_to_the_middle() -> None:
    assert [Scale(0, 2, 10, 110)(value) for value in (0, 1, 2)] == [10, 60, 110]
    assert Scale(3, 3, 0, 50)(3) == 25


def test_equal_values_still_have_room_around_them() -> None:
    assert padded([2.0, 2.0]) == (1.8, 2.2)
    assert padded([0.0]) == (-1.0, 1.0)


def test_a_line_chart_is_this_drawing() -> None:
    panel = Panel(title="A < B", unit="share", lines=(Line(label="<x>", steps=(1, 2, 3), values=(0.0, 1.0, 0.5)),))
    assert line_chart(panel) == (
        '<svg viewBox="0 0 360 200" role="img" aria-label="A &lt; B">'
        '<g><line x1="42" x2="352" y1="178" y2="178" class="grid"/><text x="36" y="182" class="axis end">0 %</text></g>'
        '<g><line x1="42" x2="352" y1="93" y2="93" class="grid"/><text x="36" y="97" class="axis end">50 %</text></g>'
        '<g><line x1="42" x2="352" y1="8" y2="8" class="grid"/><text x="36" y="12" class="axis end">100 %</text></g>'
        '<text x="42" y="195" class="axis middle">1</text><text x="197" y="195" class="axis middle">2</text>'
        '<text x="352" y="195" class="axis middle">3</text><text x="36" y="195" class="axis end">step</text>'
        '<polyline points="42,178 197,8 352,93" class="c0 line"/>'
        '<circle cx="42" cy="178" r="5" class="spot"><title>&lt;x&gt;, step 1: 0 %</title></circle>'
        '<circle cx="197" cy="8" r="5" class="spot"><title>&lt;x&gt;, step 2: 100 %</title></circle>'
        '<circle cx="352" cy="93" r="5" class="spot"><title>&lt;x&gt;, step 3: 50 %</title></circle></svg>'
    )


def test_bars_are_this_drawing() -> None:
    bars = (
        Bar(value=0.5, low=0.25, high=0.75, style="before", text="50.0 %", title="before"),
        Bar(value=None, low=None, high=None, style="after", text="–", title="after"),
    )
    assert bar_chart([BarGroup(label="pass@1", bars=bars)], "Shares") == (
        '<svg viewBox="0 0 360 58" role="img" aria-label="Shares"><text x="0" y="13" class="label">pass@1</text>'
        '<g><title>before</title><rect x="0" y="20" width="272" height="13" rx="2" class="track"/>'
        '<rect x="0" y="20" width="136" height="13" rx="2" class="before"/>'
        '<path d="M68.0 22.5v8M68.0 26.5H204.0M204.0 22.5v8" class="halo"/>'
        '<path d="M68.0 22.5v8M68.0 26.5H204.0M204.0 22.5v8" class="whisker"/>'
        '<text x="360" y="31" class="value end">50.0 %</text></g>'
        '<g><title>after</title><rect x="0" y="37" width="272" height="13" rx="2" class="track"/>'
        '<text x="360" y="48" class="value end">–</text></g></svg>'
    )


def test_longer_bars_mean_greater_values() -> None:
    def width(value: float) -> float:
        bar = Bar(value=value, low=None, high=None, style="after", text="", title="")
        drawn = bar_chart([BarGroup(label="", bars=(bar,))], "", high=4.0)
        return float(re.search(r'width="([\d.]+)" height="13" rx="2" class="after"', drawn)[1])

    assert width(1.0) < width(2.0) < width(4.0)


def test_a_gain_and_a_loss_look_different() -> None:
    assert "way gain" in change_mark(0.2, 0.9)
    assert "way loss" in change_mark(0.9, 0.2)
    assert "way" not in change_mark(0.5, 0.5)
    assert "full" not in change_mark(0.5, None)


def test_sparks_rise_with_the_values_and_never_grow_too_wide() -> None:
    assert spark([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert spark([3, 3, 3]) == "▄▄▄"
    assert spark([]) == ""
    assert len(spark(list(range(1000)), 32)) <= 32


def test_only_long_lines_are_smoothed_and_a_mean_stays_within_its_values() -> None:
    assert smoothed([1.0] * 23) is None
    calm = smoothed([0.0, 1.0] * 30)
    assert calm is not None
    assert len(calm) == 60
    assert all(0 < value < 1 for value in calm)
    assert smoothed([2.0] * 50) == (2.0,) * 50


def test_curves_are_found_by_their_keys_and_components_before_weights_come_first() -> None:
    records = [
        {"step": 1, "reward": 0.5, "rewards/speed/mean": 9, "components/speed/mean": 0.1, "pass_rate": 0.25, "kl": 0},
        {"step": 2, "reward": None, "components/speed/mean": 0.2, "seconds/update": 1.5},
        {"step": 2, "components/speed/mean": 0.3, "pass_rate": float("nan"), "truncated": "x"},
    ]
    panels = {panel.title: panel.lines for panel in panels_of_run(records)}
    assert panels == {
        "Reward, weighted sum": (Line(label="reward", steps=(1,), values=(0.5,)),),
        "Reward by component": (Line(label="speed", steps=(1, 2), values=(0.1, 0.3)),),
        "Shares of completions": (Line(label="correct", steps=(1,), values=(0.25,)),),
        "Seconds per step": (Line(label="update", steps=(2,), values=(1.5,)),),
    }


def test_rewards_as_trl_logs_them_are_drawn_when_there_are_no_components() -> None:
    (panel,) = panels_of_run([{"step": 1, "rewards/accuracy/mean": 1, "rewards/accuracy/std": 0}])
    assert [line.label for line in panel.lines] == ["accuracy"]


def test_several_runs_share_a_panel_with_a_line_each() -> None:
    (panel,) = panels_of_runs({"a": [{"step": 1, "reward": 1.0}], "b": [{"step": 1, "reward": 2.0}], "c": []})
    assert [(line.label, line.values) for line in panel.lines] == [("a", (1.0,)), ("b", (2.0,))]


def test_one_step_is_a_dot() -> None:
    assert 'class="c0 dot"' in line_chart(
        Panel(title="", unit="plain", lines=(Line(label="", steps=(1,), values=(2.0,)),))
    )
