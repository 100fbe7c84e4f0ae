"""The sentences that people read, in their language: each has a code, and its words stand in `mosha/sentences`.

A code is `folder.words`: the entry `words` of `sentences/folder.toml`, with one template for each language. Templates
are those of `str.format`; a list is written `{names:or}` ("a, b or c") or `{names:and}`.
"""

from __future__ import annotations

import os
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

__all__ = [
    "LANGUAGES",
    "Language",
    "Phrase",
    "current_language",
    "is_code",
    "keep_language",
    "phrase",
    "read_language",
    "say",
    "set_language",
    "templates",
    "translate",
]

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
_FOLDER = Path(__file__).resolve().parent.parent / "sentences"
_CODE = re.compile(r"[a-z][a-z0-9_]*\.[a-z0-9_]+")
_JOINERS: dict[tuple[str, str], tuple[str, str]] = {
    ("en", "or"): (", ", " or "),
    ("en", "and"): (", ", " and "),
    ("zh", "or"): ("、", "或 "),
    ("zh", "and"): ("、", "和 "),
}
_chosen: Language | None = None


def set_language(language: str | None) -> None:
    """Choose the language of errors, explanations and pictures for this process; None goes back to the environment's.

    Args:
        language: "en" or "zh"; names of locales such as "zh_CN.UTF-8" are understood.

    >>> set_language("zh")
    >>> current_language()
    'zh'
    >>> set_language(None)
    """
    global _chosen  # noqa: PLW0603
    _chosen = None if language is None else read_language(language)


@contextmanager
def keep_language() -> Iterator[None]:
    """Whatever language is chosen inside, the one from before is back afterwards.

    >>> with keep_language():
    ...     set_language("zh")
    >>> current_language()
    'en'
    """
    global _chosen  # noqa: PLW0603
    before = _chosen
    try:
        yield
    finally:
        _chosen = before


def current_language() -> Language:
    """The language that was chosen: by `set_language`, or by the variable MOSHA_LANG; English otherwise."""
    return _chosen or read_language(os.environ.get("MOSHA_LANG", ""))


def read_language(name: str) -> Language:
    """The language of a locale's name; English where it is another one.

    >>> read_language("zh_CN.UTF-8"), read_language("C")
    ('zh', 'en')
    """
    return "zh" if name.lower().startswith("zh") else "en"


def is_code(text: object) -> bool:
    """Whether a text is a code and not a sentence.

    >>> is_code("tables.range_reversed"), is_code("the range is reversed.")
    (True, False)
    """
    return isinstance(text, str) and _CODE.fullmatch(text) is not None


@cache
def templates(folder: str) -> Mapping[str, Mapping[str, str]]:
    """The sentences of one folder: their codes without its name, and a template for each language."""
    import tomllib  # noqa: PLC0415  (only whoever reads a sentence pays for it)

    file = _FOLDER / f"{folder}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def say(code: str, language: Language | None = None, /, **fields: object) -> str:
    """The sentence of a code, with its fields filled in. A sentence that is missing is its code: never an error.

    >>> say("core.closing_nothing", "en")
    'Nothing was spent.'
    """
    language = language or current_language()
    folder, _, name = code.partition(".")
    entry = templates(folder).get(name, {})
    template = entry.get(language) or entry.get("en")
    if template is None:
        return f"{code}: {_plain_list(fields)}" if fields else code
    try:
        return _Formatter(language).format(template, **fields)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError):
        return f"{code}: {_plain_list(fields)}"


class Phrase(str):
    """A part of a sentence with a code of its own: an English text that follows the language of its sentence."""

    __slots__ = ("code", "fields")
    code: str
    fields: dict[str, object]

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive_phrase, (self.code, self.fields)


def phrase(code: str, **fields: object) -> Phrase:
    """A part of a sentence, to be given as a field of another.

    >>> phrase("core.closing_nothing")
    'Nothing was spent.'
    """
    made = Phrase(say(code, "en", **fields))
    made.code, made.fields = code, fields
    return made


def translate(value: object, language: Language) -> Any:
    """A phrase in a language; whatever else it is stays as it is."""
    return say(value.code, language, **value.fields) if isinstance(value, Phrase) else value


def _revive_phrase(code: str, fields: dict[str, object]) -> Phrase:
    return phrase(code, **fields)


def _plain_list(fields: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


class _Formatter(string.Formatter):
    """`str.format` for templates: fields by name alone, and lists joined in the language of the sentence."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def get_field(self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[object, str]:
        """No attributes and no items: a template names fields and nothing inside of them."""
        return self.get_value(field_name, args, kwargs), field_name

    def convert_field(self, value: object, conversion: str | None) -> Any:
        return super().convert_field(translate(value, self._language), conversion)

    def format_field(self, value: object, format_spec: str) -> str:
        joiner = _JOINERS.get((self._language, format_spec))
        if joiner is None:
            return str(format(value, format_spec))
        between, last = joiner
        listed = value if isinstance(value, Iterable) else [value]
        parts = [str(translate(part, self._language)) for part in listed]
        return last.join([*([between.join(parts[:-1])] if parts[:-1] else []), *parts[-1:]])
