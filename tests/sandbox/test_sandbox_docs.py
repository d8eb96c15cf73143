"""The Python blocks of docs/sandbox.md print what they say."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "sandbox.md"


def test_the_examples_print_what_they_say(capsys):
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) == 2
    expected = [value for block in blocks for value in re.findall(r"# (\S+)$", block, re.MULTILINE)]
    module = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), module)
    assert capsys.readouterr().out.split() == expected
