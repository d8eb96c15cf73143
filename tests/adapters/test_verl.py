import math

import pytest

from outpace.adapters.verl import compute_score, rows
from outpace.errors import InfrastructureError
from outpace.schema import Outcome
from outpace.testing import ScriptedGrader, verdict

from .test_scoring import task


def test_the_score_is_the_total_and_the_components_are_beside_it():
    score = compute_score(ScriptedGrader({"right": verdict()}), [task()])
    result = score(data_source="outpace", solution_str="right", ground_truth="made/up", extra_info={"index": 0})
    assert math.isnan(result.pop("speed"))
    assert result == {"syntax": 1.0, "security": 1.0, "accuracy": 2.0, "score": 4.0}


def test_keywords_that_verl_adds_are_accepted():
    score = compute_score(ScriptedGrader({}, default=verdict(Outcome.NO_CODE)), [task()])
    assert score("outpace", "", "made/up", None, reward_router_address="x")["score"] == 0.0


def test_a_failure_of_ours_is_an_error_not_a_score():
    with pytest.raises(InfrastructureError, match="could not be graded"):
        compute_score(ScriptedGrader({}), [task()])("outpace", "x", "made/up")


def test_rows_hold_the_tasks_id_as_ground_truth_and_no_expected_value():
    (row,) = rows([task()])
    assert row["reward_model"] == {"style": "rule", "ground_truth": "made/up"}
    assert row["prompt"] == [{"role": "user", "content": "Write f."}]
