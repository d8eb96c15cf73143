import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outpace.report.code import MAX_CHARACTERS, code_block, shortened
from outpace.report.markdown import fenced, plain_text
from outpace.report.markup import Markup, escape, join, tag, visible


class Seen(HTMLParser):
    """What a browser would make of a page: its elements and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(name)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text())
def test_any_text_in_an_element_comes_back_as_that_text_and_no_element(text: str) -> None:
    seen = Seen(tag("p", text))
    assert seen.tags == ["p"]
    assert seen.text == visible(text)


@given(st.text())
def test_any_text_in_an_attribute_stays_in_it(text: str) -> None:
    seen = Seen(tag("p", title=text))
    assert (seen.tags, seen.attributes, seen.text) == (["p"], [("title", visible(text))], "")


@given(st.text(alphabet="\"'#\\abrf def0x\n<>&{}", max_size=200))
def test_coloured_code_shows_every_character_and_makes_no_element_but_spans(source: str) -> None:
    seen = Seen(code_block(source))
    assert seen.text == source
    assert set(seen.tags) <= {"pre", "code", "span"}


def test_code_is_coloured() -> None:
    assert code_block("def f(x):  # <b>\n    return len('a') + 10") == (
        '<pre><code><span class="hk">def</span> f(x):  <span class="hc"># &lt;b&gt;</span>\n'
        '    <span class="hk">return</span> <span class="hb">len</span>(<span class="hs">&#x27;a&#x27;</span>)'
        ' + <span class="hn">10</span></code></pre>'
    )


def test_what_was_made_here_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "<"), " & ", join(["a", Markup("<br/>")], ",")) == "<p><b>&lt;</b> &amp; a,<br/></p>"


def test_attributes_of_none_are_left_out_and_names_take_hyphens() -> None:
    assert tag("rect", class_="bar", aria_label=None, stroke_width=1.50001) == '<rect class="bar" stroke-width="1.5"/>'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("\x00\x1b[31m", "\\u0000\\u001b[31m"),
        ("\ud800", "\\ud800"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("tab\tand\nline é 漢", "tab\tand\nline é 漢"),
    ],
)
def test_what_hides_or_reorders_text_is_shown(text: str, shown: str) -> None:
    assert escape(text) == shown


@given(st.text(alphabet="`~\n a<", max_size=60))
def test_no_text_closes_its_own_fence(text: str) -> None:
    lines = fenced(text, "python").split("\n")
    fence = lines[-1]
    assert set(fence) == {"`"}
    assert lines[0] == f"{fence}python"
    assert not any(fence in line for line in lines[1:-1])


@pytest.mark.parametrize("text", ["<img src=x>", "a | b", "`x`\n# head", "[a](http://b)", "&lt;"])
def test_text_in_a_line_of_markdown_is_no_markup(text: str) -> None:
    shown = plain_text(text)
    assert "\n" not in shown
    assert "<" not in shown
    assert not re.search(r"(?<!\\)[`|#\[\]]", shown)


def test_a_long_program_is_cut_and_says_so() -> None:
    assert shortened("x" * (MAX_CHARACTERS + 7)).endswith("\n… 7 more characters")
    assert shortened("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS


def test_an_unclosed_quote_costs_no_time_to_colour() -> None:
    assert "'''" in Seen(code_block("'''" * 2000)).text
