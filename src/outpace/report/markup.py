"""HTML and SVG that cannot be injected into: text is escaped unless it was made here.

`tag("b", text)` escapes `text`; only what `tag` and `join` return, a `Markup`, goes in as it is. So text that a model
wrote can reach a page in one way only, and that way shows it.
"""

import html
import re
from collections.abc import Iterable

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""Control characters, lone surrogates, and what hides or reorders the text around it."""

_VOID = frozenset({"meta", "line", "circle", "rect", "path", "polyline", "br"})


class Markup(str):
    """Markup that is safe to put into a page; made by `tag` and `join` only."""

    __slots__ = ()


def visible(text: str) -> str:
    """Show what cannot be seen: control, direction and zero-width characters and lone surrogates become `\\u202e`."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def escape(text: str) -> Markup:
    """Text as HTML: a `Markup` as it is, anything else made visible and escaped, quotes too."""
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text), quote=True))


def join(parts: Iterable[str], separator: str = "") -> Markup:
    """Put parts one after the other, escaping those that are plain text."""
    return Markup(escape(separator).join(escape(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """One element; attributes of None are left out, `class_` is `class`, other underscores become hyphens."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if not children and name in _VOID:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def _attribute(value: str | float) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
