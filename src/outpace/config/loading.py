"""From a YAML file and `key=value` words to a `Recipe`; every wrong input becomes one sentence.

YAML is read by its safe subset, with two repairs: `5e-5` is a number, and a key given twice is an error.
"""

import difflib
import re
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from outpace.config.recipe import Recipe
from outpace.errors import ConfigError

_MAX_BYTES = 2**20
"""A recipe is a page of text; anything larger is another file given by mistake."""


class _Loader(yaml.SafeLoader):
    """YAML's safe subset; refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"key {key!r} given twice", key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


def recipe_folders() -> list[Path]:
    """Where shipped recipes are: inside the installed package, or beside `src` in a clone."""
    package = Path(__file__).resolve().parents[1]
    return [folder for folder in (package / "recipes", package.parents[1] / "recipes") if folder.is_dir()]


def shipped_recipes() -> dict[str, Path]:
    """Name to file of every recipe that comes with outpace."""
    return {path.stem: path for folder in reversed(recipe_folders()) for path in sorted(folder.glob("*.yaml"))}


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe file, or a shipped recipe by name, and lay `key=value` overrides over it.

    Args:
        path: a YAML file, or a shipped name such as `starter`.
        overrides: `key=value` words; the value is YAML, and dots reach into `rewards` (`rewards.speed=0.5`).

    Raises:
        ConfigError: the file, a key or a value cannot be used.
    """
    file = _find(path)
    values = _read(file)
    for word in overrides:
        _override(values, word)
    if not values.get("name"):
        values["name"] = re.sub(r"[^A-Za-z0-9._-]", "-", file.stem).lstrip("._-") or "run"
    try:
        return Recipe.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, file)) from None


def dump_recipe(recipe: Recipe) -> str:
    """The resolved recipe as YAML that `load_recipe` reads back to an equal recipe."""
    return yaml.safe_dump(recipe.model_dump(), sort_keys=False, allow_unicode=True)


def _find(path: str | Path) -> Path:
    file = Path(path)
    if file.is_file():
        return file
    if file.is_dir():
        raise ConfigError(f"{file} is a folder, not a recipe: give the YAML file in it")
    shipped = shipped_recipes()
    if str(path) in shipped:
        return shipped[str(path)]
    close = difflib.get_close_matches(file.stem, shipped, n=1)
    hint = f"did you mean {close[0]}?" if close else f"shipped recipes are {', '.join(shipped) or 'not installed'}"
    raise ConfigError(f"there is no recipe file {str(path)!r}; {hint}")


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"{file} is too large for a recipe: give a YAML file of keys and values")
        values = yaml.load(file.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader subclass
    except OSError as error:
        raise ConfigError(f"recipe {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"recipe {file} is not UTF-8 text: save it as such") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(_yaml_sentence(error, str(file))) from error
    if not isinstance(values, dict):
        raise ConfigError(f"recipe {file} holds {_kind(values)}, not `key: value` lines")
    wrong = [key for key in values if not isinstance(key, str)]
    if wrong:
        raise ConfigError(f"recipe {file}: the key {wrong[0]!r} is not a name: put it in quotes or remove it")
    return values


def _override(values: dict[str, Any], word: str) -> None:
    key, equals, text = word.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigError(f"{word!r} is not an override: write key=value, such as max_steps=3")
    try:
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader subclass
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(_yaml_sentence(error, f"override {word!r}")) from error
    first, dot, rest = key.partition(".")
    if dot and first in Recipe.model_fields:
        inner = values.get(first, Recipe.model_fields[first].default)
        if not isinstance(inner, dict):
            raise ConfigError(f"override {word!r}: {first} has no keys of its own")
        values[first] = {**inner, rest: value}
        return
    values[key] = value


def _yaml_sentence(error: Exception, where: str) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = f" line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return f"{where}{place}: not valid YAML ({problem})"


def _explain(error: ValidationError, file: Path) -> str:
    """The first thing wrong, as one sentence; how many more there are, if any."""
    details = error.errors(include_url=False)
    first = details[0]
    key = str(first["loc"][0]) if first["loc"] else ""
    same_key = [detail for detail in details if detail["loc"][:1] == first["loc"][:1]]
    others = len({detail["loc"][:1] for detail in details}) - 1
    more = f" (and {others} more)" if others else ""
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, Recipe.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]}?" if close else "see docs/recipes.md for the keys there are"
        return f"recipe {file}: unknown key {key!r}; {hint}{more}"
    if first["type"] == "missing":
        return f"recipe {file}: the key {key!r} is missing{more}"
    if first["type"] == "value_error":
        return f"recipe {file}: {first['ctx']['error']}{more}"
    wanted = " or ".join(dict.fromkeys(_wanted(detail["msg"]) for detail in same_key))
    value = first["input"]
    return f"recipe {file}: {'.'.join(map(str, first['loc'][:1]))} {wanted}, got {value!r} ({_kind(value)}){more}"


def _wanted(message: str) -> str:
    return message.replace("Input should be", "must be").replace("String should", "must").replace("Value error, ", "")


def _kind(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a truth value", int: "a whole number"}
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}")
