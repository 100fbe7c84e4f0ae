"""The sentences that people read, in their language: each has a code, and its words stand in `mosha/sentences`.

A code is `folder.words`: the entry `words` of `sentences/folder.toml`, with one template for each language. Templates
are those of `str.format`; a list is written `{names:or}` ("a, b or c") or `{names:and}`, conditions `{parts:both}`.
"""

from __future__ import annotations

import errno
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
    "describe_system_error",
    "is_code",
    "is_known",
    "keep_language",
    "make_note",
    "phrase",
    "phrase_from_dict",
    "phrase_to_dict",
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
    ("en", "both"): (", ", " and "),
    ("zh", "or"): ("、", "或"),
    ("zh", "and"): ("、", "和"),
    ("zh", "both"): ("，", "且"),  # noqa: RUF001
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


def is_known(code: str) -> bool:
    """Whether there is a sentence of this code.

    >>> is_known("core.closing_nothing"), is_known("core.of_a_later_version")
    (True, False)
    """
    folder, _, name = code.partition(".")
    return is_code(code) and name in templates(folder)


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
    template = entry.get(language, entry.get("en"))
    if template is None:
        return f"{code}: {_plain_list(fields)}" if fields else code
    try:
        return _Formatter(language).format(template, **fields)
    except (KeyError, IndexError, ValueError, AttributeError, TypeError):
        return f"{code}: {_plain_list(fields)}"


class Phrase(str):
    """A text that knows its code and its fields, so that it can be said in another language later.

    As a field of a sentence it is English and follows the language of its sentence; as a note of an answer it is in
    the language of whoever asked.
    """

    __slots__ = ("code", "fields")
    code: str
    fields: dict[str, object]

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_phrase, (str(self), self.code, self.fields)


def phrase(code: str, **fields: object) -> Phrase:
    """A part of a sentence, to be given as a field of another.

    >>> phrase("core.closing_nothing")
    'Nothing was spent.'
    """
    return _build_phrase(say(code, "en", **fields), code, fields)


def make_note(code: str, **fields: object) -> Phrase:
    """A sentence that is kept beside an answer: in the language chosen now, and ready to be said in another one.

    Args:
        code: of the sentence.
        fields: what is filled in: texts, numbers, lists of them, and phrases.

    >>> note = make_note("core.closing_nothing")
    >>> note, translate(note, "zh")
    ('Nothing was spent.', '没有花费任何预算。')
    """
    return _build_phrase(say(code, **fields), code, fields)


def describe_system_error(error: OSError) -> str:
    """Why the system refused, to be given as a field; a rare reason in the system's own words.

    >>> import errno
    >>> describe_system_error(FileNotFoundError(errno.ENOENT, "No such file or directory"))
    'No such file or directory'
    """
    code = f"core.system_{errno.errorcode.get(error.errno or 0, 'other').lower()}"
    return phrase(code) if is_known(code) else str(error.strerror)


def phrase_to_dict(value: object) -> Any:
    """A phrase as plain data, with the phrases inside of it; whatever else it is stays as it is.

    >>> phrase_to_dict(phrase("core.closing_nothing"))
    {'code': 'core.closing_nothing', 'fields': {}}
    """
    if isinstance(value, Phrase):
        return {"code": value.code, "fields": {name: phrase_to_dict(part) for name, part in value.fields.items()}}
    return [phrase_to_dict(part) for part in value] if isinstance(value, list | tuple) else value


def phrase_from_dict(value: Any) -> Any:
    """The note that `phrase_to_dict` wrote, in the language chosen now.

    >>> phrase_from_dict({"code": "core.closing_nothing", "fields": {}})
    'Nothing was spent.'
    """
    if isinstance(value, dict):
        fields = {str(name): phrase_from_dict(part) for name, part in value["fields"].items()}
        return make_note(str(value["code"]), **fields)
    return [phrase_from_dict(part) for part in value] if isinstance(value, list) else value


def translate(value: object, language: Language) -> Any:
    """A phrase in a language; whatever else it is stays as it is."""
    return say(value.code, language, **value.fields) if isinstance(value, Phrase) else value


def _build_phrase(text: str, code: str, fields: dict[str, object]) -> Phrase:
    made = Phrase(text)
    made.code, made.fields = code, fields
    return made


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
        if len(parts) < 2:
            return "".join(parts)
        first = between.join(parts[:-1])
        return (
            f"{_space_after(first)}{last}{_space_before(parts[-1])}"
            if last.isalpha()
            else last.join([first, parts[-1]])
        )


def _space_after(text: str) -> str:
    """A Chinese word stands apart from Latin letters and figures before it."""
    return f"{text} " if text[-1:].isascii() else text


def _space_before(text: str) -> str:
    """And from those after it."""
    return f" {text}" if text[:1].isascii() else text
