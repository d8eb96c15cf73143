"""Python source as HTML, coloured by one regular expression: it colours what it knows and shows all the rest."""

import builtins
import keyword
import re

from outpace.report.markup import Markup, escape, join, tag

MAX_CHARACTERS = 6000
"""Longer programs are cut; the samples file has the whole."""

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
      | (?P<string>[rRbBuUfF]{0,2}(?:
            \'{3}(?:[^\\]|\\.)*?\'{3} | "{3}(?:[^\\]|\\.)*?"{3} | '(?:[^'\\\n]|\\.)*' | "(?:[^"\\\n]|\\.)*"))
      | (?P<number>\b\d[\w.]*)
      | (?P<name>[^\W\d]\w*)""",
    re.VERBOSE | re.DOTALL,
)
_BUILTINS = frozenset(name for name in dir(builtins) if name.islower() and not name.startswith("_"))


def shortened(text: str) -> str:
    """The text, or its beginning and how much of it was left out."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n… {len(text) - MAX_CHARACTERS} more characters"


def code_block(source: str) -> Markup:
    """A `pre` block with coloured keywords, built-ins, strings, numbers and comments."""
    source, parts, end = shortened(source), [], 0
    for match in _TOKEN.finditer(source):
        parts.append(escape(source[end : match.start()]))
        kind = _kind(match)
        parts.append(tag("span", match[0], class_=kind) if kind else escape(match[0]))
        end = match.end()
    return tag("pre", tag("code", join([*parts, escape(source[end:])])))


def _kind(match: re.Match[str]) -> str | None:
    if match.lastgroup != "name":
        return {"comment": "hc", "string": "hs", "number": "hn"}[match.lastgroup or ""]
    if keyword.iskeyword(match[0]):
        return "hk"
    return "hb" if match[0] in _BUILTINS else None
