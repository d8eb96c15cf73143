import json
import re
from pathlib import Path

import pytest
from report_runs import make_run, samples, save
from test_markup import Seen

from outpace.errors import RunFolderError
from outpace.evaluate import GradedSample
from outpace.report import write
from outpace.report.picks import pick_programs
from outpace.report.runs import flat, read_run
from outpace.schema import Outcome

HOSTILE = (
    "</code></pre><script>alert(1)</script><img src=x onerror=alert(2)>\u202e```\n# heading\n"
    "````` | [a](http://b) \ud800"
)


def both(run: Path) -> tuple[str, str]:
    markdown, html = write([run])
    return markdown.read_text(encoding="utf-8"), html.read_text(encoding="utf-8")


def test_a_small_run_gives_this_markdown(tmp_path: Path) -> None:
    markdown, _ = both(make_run(tmp_path / "small", before=None, after=4))
    assert markdown == (Path(__file__).parent / "golden_small.md").read_text(encoding="utf-8")


def test_before_and_after_stand_side_by_side_with_the_interval_of_the_difference(tmp_path: Path) -> None:
    markdown, html = both(make_run(tmp_path / "run", before=0, after=4))
    assert (
        "| correct (pass@1) | 0.0 % (0.0–60.2) | 100.0 % (39.8–100.0) | +100.0 (+14.8 to +100.0) | better |" in markdown
    )
    text = Seen(html).text
    assert "On train tasks, correct answers rose from 0.0 % to 100.0 % (+100.0 points, 95 % interval" in text
    assert text.index("train tasks") < text.index("held-out tasks")


def test_what_did_not_change_is_said_to_have_stayed(tmp_path: Path) -> None:
    markdown, _ = both(make_run(tmp_path / "run", before=2, after=2))
    assert "- On train tasks, correct answers stayed at 50.0 %." in markdown


def test_a_page_needs_nothing_from_outside_and_allows_no_script(tmp_path: Path) -> None:
    _, html = both(make_run(tmp_path / "run"))
    seen = Seen(html)
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    assert not any(name in {"src", "href"} or name.startswith("on") for name, _ in seen.attributes)
    assert "http-equiv" in dict(seen.attributes)
    assert any("default-src 'none'" in (value or "") for name, value in seen.attributes if name == "content")
    assert not re.search(r"https?://|@import|url\(", html)


def test_whatever_a_model_writes_is_shown_and_never_interpreted(tmp_path: Path) -> None:
    facts = {"completion": HOSTILE, "source": HOSTILE, "detail": HOSTILE, "reason": HOSTILE}
    tame, hostile = tmp_path / "tame", tmp_path / "hostile"
    make_run(tame, after=2, completion="a", source="a", detail="a", reason="a")
    make_run(hostile, after=2, **facts)
    tags = [sorted(set(Seen(both(run)[1]).tags)) for run in (tame, hostile)]
    assert tags[0] == tags[1]
    markdown, html = both(hostile)
    assert "<script" not in html
    assert "\u202e" not in html + markdown
    assert "\\u202e" in Seen(html).text
    outside = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", markdown)
    assert "<script" not in outside
    assert "<img" not in outside
    assert not re.search(r"(?m)^# heading", outside)


def test_names_of_tasks_runs_and_settings_are_text_too(tmp_path: Path) -> None:
    run = tmp_path / "<b>run"
    make_run(run, after=None, before=None)
    save(run, "after", [s for s in samples(2) if s.split == "train"])
    path = run / "samples" / "evaluation-after.jsonl"
    path.write_text(path.read_text().replace("fake/a", "<i>task"))
    summary = run / "evaluation-after.json"
    summary.write_text(summary.read_text().replace("fake/a", "<i>task"))
    (run / "recipe.yaml").write_text("model: <u>x\n'<s>key': 1\n")
    markdown, html = both(run)
    assert not {"i", "u", "s"} & set(Seen(html).tags)
    assert "<" not in re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", markdown)


def test_a_run_that_has_only_begun_gives_a_report_that_says_what_is_missing(tmp_path: Path) -> None:
    run = tmp_path / "begun"
    run.mkdir()
    (run / "recipe.yaml").write_text("method: grpo\n")
    markdown, html = both(run)
    for sentence in (
        "Versions and machine (provenance.json) were not recorded.",
        "No training step was logged (metrics.jsonl is not there).",
        "There is no evaluation before training (evaluation-before.json).",
        "There is no evaluation after training (evaluation-after.json).",
    ):
        assert sentence in Seen(html).text
        assert sentence in markdown


def test_torn_and_damaged_files_are_named_and_the_rest_is_reported(tmp_path: Path) -> None:
    run = make_run(tmp_path / "torn")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "rew')
    (run / "evaluation-after.json").write_text("{}")
    (run / "provenance.json").write_text("{")
    (run / "recipe.yaml").write_text("a: [")
    data = read_run(run)
    assert data.missing == (
        "The recipe (recipe.yaml) cannot be read.",
        "Versions and machine (provenance.json) cannot be read.",
        "1 line of metrics.jsonl cannot be read: writing was cut short.",
        "The evaluation after cannot be read.",
    )
    assert len(data.metrics) == 3
    assert data.latest is not None
    assert data.latest.label == "before"
    both(run)


def test_evaluations_that_share_no_task_are_shown_and_not_compared(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", after=None)
    save(run, "after", [GradedSample(task_id="other/task", split="train", index=0, completion="", finished=True)])
    data = read_run(run)
    assert data.comparison is None
    assert "share no task" in data.missing[0]
    both(run)


def test_warnings_are_told_once_with_their_first_step(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    records = [{"step": 1, "warnings": []}, {"step": 2, "warnings": ["low", "flat"]}, {"step": 3, "warnings": ["low"]}]
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    assert read_run(run).warnings == ("step 2: low", "step 2: flat")
    assert "step 2: flat" in Seen(both(run)[1]).text


def test_isolation_settings_cost_and_provenance_are_told(tmp_path: Path) -> None:
    markdown, html = both(make_run(tmp_path / "run"))
    text = Seen(html).text
    for fact in ("Isolation in force: strict (landlock, seccomp).", "Without cgroup: not delegated.", "Clock: exact."):
        assert fact in text
    assert "1 min 15 s sampling, 0.5 s grading, peak memory 1.50 GB" in text
    assert "- starts.1.step: 0\n- gpu: –" in markdown


def test_several_runs_stand_side_by_side_under_names_of_their_own(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "a" / "run"), make_run(tmp_path / "b" / "run", after=2)]
    markdown, html = write(runs, out=tmp_path / "out")
    assert markdown.parent == html.parent == tmp_path / "out"
    text = markdown.read_text()
    assert "|  | a/run | b/run |" in text
    assert "| correct (pass@1) | 100.0 % (39.8–100.0) | 50.0 % (0.0–100.0) |" in text
    page = html.read_text()
    assert page.count('class="f0"') > 1
    assert page.count('class="f1"') > 1


def test_the_same_run_twice_still_has_two_names(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "run")
    _, html = write([run, run])
    assert html.parent == tmp_path / "runs"
    assert "runs/run (2)" in html.read_text()


@pytest.mark.parametrize(("name", "message"), [("nowhere", "there is no run folder"), ("empty", "is not a run folder")])
def test_what_is_no_run_is_refused_in_one_sentence(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunFolderError, match=message):
        write([tmp_path / name])
    with pytest.raises(RunFolderError, match="no run was named"):
        write([])


def sample(outcome: Outcome, index: int, **facts: object) -> GradedSample:
    given = {"completion": str(index), "source": f"def f{index}(): ...", "finished": True, "task_id": "t/a", **facts}
    return GradedSample(split="train", index=index, outcome=outcome, **given)


def test_five_programs_show_the_best_gain_a_typical_one_and_different_failures() -> None:
    found = [
        sample(Outcome.CORRECT, 0, speedup=1.0, task_id="t/b"),
        sample(Outcome.CORRECT, 1, speedup=9.0),
        sample(Outcome.CORRECT, 2, speedup=2.0, task_id="t/b"),
        sample(Outcome.WRONG, 3),
        sample(Outcome.WRONG, 4),
        sample(Outcome.FORBIDDEN, 5),
        sample(Outcome.NO_CODE, 6, source=None),
    ]
    picks = pick_programs(found)
    assert [(pick.why, pick.sample.index) for pick in picks] == [
        ("the greatest gain", 1),
        ("a typical correct one", 2),
        ("a wrong answer", 3),
        ("something forbidden", 5),
        ("no code", 6),
    ]
    assert pick_programs(found[::-1]) == picks


def test_without_failures_more_correct_programs_are_shown_and_none_twice() -> None:
    found = [sample(Outcome.CORRECT, i, speedup=1.0 + i, task_id=f"t/{i % 3}") for i in range(4)]
    assert sorted(pick.sample.index for pick in pick_programs([*found, found[0]])) == [0, 1, 2, 3]
    assert pick_programs([]) == []


def test_nested_settings_become_dotted_lines() -> None:
    given = {"a": {"b": 1, "c": {}}, "d": [1, 2], "e": [{"f": True}], "g": None, "h": []}
    assert flat(given) == {"a.b": "1", "a.c": "–", "d": "1, 2", "e.1.f": "true", "g": "–", "h": "–"}
