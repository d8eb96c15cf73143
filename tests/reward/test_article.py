import pytest

from outpace.reward import build
from outpace.reward.article import article_speed
from outpace.schema import Outcome

from .graded import sample, timing


@pytest.mark.parametrize(
    ("one", "security", "accuracy", "speed"),
    [
        (sample(Outcome.NO_CODE), -20, -4, 0),
        (sample(Outcome.SYNTAX_ERROR), -20, -4, -5),
        (sample(Outcome.FORBIDDEN), -20, -4, -5),
        (sample(Outcome.CRASHED), 1, -4, -5),
        (sample(Outcome.WRONG, passed=9), 1, -4, -5),
        (sample(Outcome.CORRECT, speed=timing(2.0)), 1, 4, 5),
        (sample(Outcome.CORRECT, speed=timing(1.0)), 1, 4, 0),
        (sample(Outcome.CORRECT), 1, 4, -5),
        (sample(None), None, None, None),
    ],
)
def test_the_article_preset_gives_the_articles_numbers(one, security, accuracy, speed):
    vector = build("article").score([one])[0]
    assert dict(vector.components) == {
        "article_security": security,
        "article_accuracy": accuracy,
        "article_speed": speed,
    }


@pytest.mark.parametrize(
    ("ratio", "code", "text"),
    [
        (2.0, 5.0, 2.0),
        (4.0, 7.5, 4.0),
        (1.0, 0.0, 0.0),
        (0.5, -10.0, -0.5),
        (0.8, -2.5, -0.8),
        (0.1, -10.0, -0.1),
        (50.0, 9.8, 10.0),
        (float("inf"), 10.0, 10.0),
    ],
)
def test_both_speed_formulas_of_the_article(ratio, code, text):
    assert article_speed(ratio, "code") == pytest.approx(code)
    assert article_speed(ratio, "text") == pytest.approx(text)


def test_the_documented_fault_of_the_texts_formula_is_there():
    a_little_slower, much_slower = article_speed(1 / 1.1, "text"), article_speed(1 / 10, "text")
    assert a_little_slower == pytest.approx(-0.909, abs=1e-3)
    assert much_slower == pytest.approx(-0.1)
    assert much_slower > a_little_slower


def test_the_text_variant_is_a_preset_of_its_own():
    vector = build("article_text").score([sample(speed=timing(3.0))])[0]
    assert vector.components["article_speed"] == 3.0
    assert vector.total == 8.0
