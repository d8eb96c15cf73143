"""Which text of a completion becomes the candidate, and why there is none."""

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outpace.extract import extract

GOOD = "def f(x):\n    return x + 1\n"
OTHER = "def f(x):\n    return x + 2\n"


def fenced(code: str, info: str = "python", fence: str = "```") -> str:
    return f"{fence}{info}\n{code}{fence}\n"


FOUND = [
    ("a plain block", fenced(GOOD)),
    ("no label", fenced(GOOD, "")),
    ("python3", fenced(GOOD, "python3")),
    ("a label with a space before and after", fenced(GOOD, " Python ")),
    ("a label with attributes", fenced(GOOD, '{.python title="f.py"}')),
    ("tildes", fenced(GOOD, "python", "~~~")),
    ("tildes in backticks' place, label with backtick", fenced(GOOD, "py`", "~~~~")),
    ("five backticks", fenced(GOOD, "python", "`````")),
    ("a closing fence that is longer", "```python\n" + GOOD + "``````\n"),
    (
        "prose around it",
        "I will write `def f(x):` first.\n\n" + fenced(GOOD) + "\nThe function `def f(x):` is short.\n",
    ),
    ("no blank line before it", "Solution:\n" + fenced(GOOD) + "Done."),
    ("a usage example behind it", fenced(GOOD) + "\nExample:\n\n" + fenced("print(f(1))\n")),
    ("an earlier draft", fenced(OTHER) + "Better:\n" + fenced(GOOD)),
    ("a broken block behind it", fenced(GOOD) + fenced("def f(x)\n    ...\n")),
    ("a remark in a text block behind it", fenced(GOOD) + fenced("f = g\n", "text")),
    ("in a block with a wrong label", fenced(GOOD, "text")),
    ("the prompt's template behind it", fenced(GOOD) + fenced("def f(x):\n    ...\n")),
    ("three spaces of indentation", textwrap.indent(fenced(GOOD), "   ")),
    ("under a list item", "1. Solution:\n\n" + textwrap.indent(fenced(GOOD), "   ")),
    ("under a list item, deeper than it has to be", "1. Solution:\n\n" + textwrap.indent(fenced(GOOD), "    ")),
    ("under a nested list item", "- a\n  - b\n\n" + textwrap.indent(fenced(GOOD), "    ")),
    ("indented like code", "Here:\n\n" + textwrap.indent(fenced(GOOD), "        ")),
    ("in a block quote", textwrap.indent(fenced(GOOD), "> ", lambda line: True)),
    ("in answer tags", "<answer>\n" + fenced(GOOD) + "</answer>\n"),
    ("windows line ends", fenced(GOOD).replace("\n", "\r\n")),
    ("a byte order mark before the fence", "\ufeff" + fenced(GOOD)),
    ("a byte order mark before the code", fenced("\ufeff" + GOOD)),
    ("still open at the end", "```python\n" + GOOD),
    ("an end marker stuck to the fence", fenced(GOOD).rstrip() + "<|im_end|>"),
    ("several end markers", fenced(GOOD).rstrip() + "<|return|>\n<|endoftext|>  "),
]


@pytest.mark.parametrize(("title", "completion"), FOUND, ids=[title for title, _ in FOUND])
def test_the_code_is_found_and_free_of_its_fence(title: str, completion: str) -> None:
    found = extract(completion, "f").candidate
    assert found is not None
    assert found.source == GOOD


def test_a_longer_fence_holds_a_shorter_one() -> None:
    code = 'DOC = """\n```python\nimport numpy\n```\n"""\n' + GOOD
    found = extract(fenced(code, "python", "````"), "f").candidate
    assert found is not None
    assert found.source == code


def test_a_fence_inside_a_docstring_is_code_when_it_is_indented_like_code() -> None:
    code = 'def f(x):\n    """\n    ```\n    f(1)\n    ```\n    """\n    return x\n'
    found = extract(fenced(code), "f").candidate
    assert found is not None
    assert found.source == code


@pytest.mark.parametrize("filler", ["- a\n", "a\n", "> a\n", "    ```\n", "</think>\n", "x`", "<|end|> "])
def test_a_very_long_text_takes_no_longer_than_its_length(filler: str) -> None:
    found = extract(filler * (1_000_000 // len(filler)) + "\n\n" + fenced(OTHER) + "~~~\n" + GOOD, "f").candidate
    assert found is not None
    assert (found.source, found.discarded) == (GOOD, (OTHER,))


def test_the_candidate_says_where_it_stood_and_what_was_left_out() -> None:
    found = extract("a\n" + fenced("import math\n") + fenced(GOOD), "f").candidate
    assert found is not None
    assert (found.where, found.discarded) == ("block 2 of 2, lines 5-8", ("import math\n",))


DEFINES = [
    "async def f(x): return x",
    "f = lambda x: x",
    "def g(x): return x\nf = g",
    "f: object = abs",
    "from math import sqrt as f",
    "import math as f",
    "class f: pass",
    "try:\n    from math import sumprod as f\nexcept ImportError:\n    f = abs",
    "if True:\n    def f(x): return x",
    "a, f = 1, abs",
    "def f(x): return x\nif __name__ == '__main__':\n    print(f(1))",
    "def f(x): ...\ndef f(x): return 1",
    "ｆ = abs",  # Python reads a full-width f as f
]
DOES_NOT = [
    "text = '''\ndef f(x):\n    return x\n'''",
    "class Solution:\n    def f(self, x): return x",
    "def outer():\n    def f(x): return x",
    "if __name__ == '__main__':\n    def f(x): return x",
    "def ff(x): return x",
    "f.x = 1",
    "d[f] = 1",
    "# def f(x): return x",
    "def ｆf(x): return x",
    "def fа(x): return x",
    "print('f')",
]


@pytest.mark.parametrize("code", DEFINES)
def test_it_defines_the_entry_point(code: str) -> None:
    assert extract(fenced(code + "\n"), "f").candidate is not None


@pytest.mark.parametrize("code", DOES_NOT)
def test_it_does_not_define_the_entry_point(code: str) -> None:
    assert extract(fenced(code + "\n"), "f").reason == "no_entry_point"


def test_a_cyrillic_letter_makes_another_name() -> None:
    assert extract(fenced("def mаtmul(A, B): return A\n"), "matmul").reason == "no_entry_point"


@pytest.mark.parametrize(
    "code", ["def f(x):\n    return ...\n", "def f(x):\n    ...\n", "def f(x):\n    '''Doc.'''\n    ...  # your code\n"]
)
def test_a_template_is_no_answer(code: str) -> None:
    assert extract(fenced(code), "f").reason == "placeholder"


@pytest.mark.parametrize(
    "code", ["def f(x):\n    pass\n", "def f(x):\n    return x[...]\n", "def f(x): return 'doc'\n"]
)
def test_a_short_answer_is_no_template(code: str) -> None:
    assert extract(fenced(code), "f").candidate is not None


def test_a_dotted_entry_point_is_a_method() -> None:
    own = "class Solution:\n    def f(self, x): return x\n"
    inherited = "class Base:\n    def f(self, x): return x\nclass Solution(Base): pass\n"
    assert extract(fenced(own), "Solution.f").candidate is not None
    assert extract(fenced(inherited), "Solution.f").candidate is not None
    assert extract(fenced(GOOD), "Solution.f").reason == "no_entry_point"
    assert extract(fenced("class Solution:\n    def f(self, x): return (\n"), "Solution.f").candidate is not None


@pytest.mark.parametrize(
    "code",
    [
        "def f(x)\n    return x\n",
        "def f(x):\n    return x\0\n",
        'def f(x):\n    "\ud800"\n    return x\n',
        "def f(x):\n\u00a0   return x\n",
        "def f(x):\n    y = " + "+".join(["1"] * 20000) + "\n",
        "def f(x):\n    return " + "(" * 5000 + "\n",
        "def f(x):\n    return '" + "a" * 70000 + "'\n",
        "f = (\n",
    ],
)
def test_a_broken_block_that_means_to_answer_is_kept_as_it_is_for_the_verdict_syntax_error(code: str) -> None:
    found = extract(fenced(code), "f").candidate
    assert found is not None
    assert found.source == code


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("", "empty"),
        ("  \n\t", "empty"),
        ("I'm sorry.", "no_fence"),
        (GOOD, "no_fence"),
        (GOOD + "```", "no_fence"),
        ("`" + GOOD + "`", "no_fence"),
        ("```python\n```", "no_fence"),
        ("```\nls\n```", "no_entry_point"),
    ],
)
def test_without_code_there_is_a_reason(completion: str, reason: str) -> None:
    assert extract(completion, "f").reason == reason


def test_a_fence_that_the_length_limit_cut_off_does_not_count() -> None:
    assert extract("```python\n" + GOOD, "f", finished=False).reason == "unclosed_fence"
    assert extract(fenced(GOOD) + "```python\ndef f(x", "f", finished=False).candidate is not None
    assert extract(fenced(GOOD) + "and so", "f", finished=False).candidate is not None


@pytest.mark.parametrize(
    "completion",
    [
        GOOD,
        GOOD + "```",
        "python\n" + GOOD,
        "Sure, here it is:\n\n" + GOOD,
        GOOD + "\nThis adds one to x.\n",
        "```\n" + GOOD,
    ],
)
def test_lenient_takes_bare_code(completion: str) -> None:
    found = extract(completion, "f", lenient=True).candidate
    assert found is not None
    assert found.source.strip() == GOOD.strip()


def test_lenient_still_wants_the_entry_point() -> None:
    assert extract("x = 1\n", "f", lenient=True).reason == "no_fence"
    assert extract("def f(x):\n    ...\n", "f", lenient=True).candidate is None
    broken = extract("def f(x)\n    return x\n", "f", lenient=True).candidate
    assert broken is not None  # to be judged as a syntax error


PIECES = st.sampled_from(
    [
        *("```", "```python", "~~~", "````", "\n", "    ", "- ", "> ", "1. ", "def f(x):", " return x"),
        *("<think>", "</think>", "<|channel|>", "<|message|>", "final", "analysis", "<|end|>"),
        *("<|start|>assistant", "<|return|>", "\0", "\ud800", "`", "\t"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)), st.booleans(), st.booleans())
def test_any_text_gives_a_candidate_or_a_reason(completion: str, finished: bool, lenient: bool) -> None:
    found = extract(completion, "f", finished=finished, lenient=lenient)
    assert (found.candidate is None) != (found.reason is None)


@given(st.lists(st.sampled_from([GOOD, OTHER, "import math\n", "x = '~'\n"]), min_size=1, max_size=5), st.booleans())
def test_the_last_block_that_defines_the_entry_point_is_chosen(codes: list[str], with_tildes: bool) -> None:
    completion = "\nprose\n".join(fenced(code, fence="~~~" if with_tildes else "```") for code in codes)
    answers = [code for code in codes if code in (GOOD, OTHER)]
    found = extract(completion, "f")
    assert (found.candidate.source if found.candidate else None) == (answers[-1] if answers else None)
