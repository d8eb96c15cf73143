import contextlib
import io
import re
from pathlib import Path

from outpace.evaluate.catalogue import catalogue

DOCS = Path(__file__).parents[2] / "docs" / "evaluation.md"


def test_the_example_in_the_docs_prints_what_the_docs_say() -> None:
    text = DOCS.read_text(encoding="utf-8")
    match = re.search(r"^```python\n(.*?)^```\n\n^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert match is not None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(match[1], str(DOCS), "exec"), {})
    assert printed.getvalue() == match[2]


def test_every_measure_is_explained_in_the_docs() -> None:
    cells = re.findall(r"^\| (`.*?) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    explained = {name for cell in cells for name in re.findall(r"`(.*?)`", cell)}
    assert {measure.name for measure in catalogue((1,))} <= explained
    assert "pass@k" in explained
