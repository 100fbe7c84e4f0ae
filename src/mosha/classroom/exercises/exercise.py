"""One exercise: what to write, in both languages, a solution, and mistakes that people make."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mosha.core.errors import InvalidParameter
from mosha.core.language import Language, current_language

__all__ = ["CHAPTERS", "Exercise", "Mistake", "Words", "find_exercise", "list_exercises", "read_function"]

CHAPTERS = ("principles", "federated", "streams", "networks", "learning")
_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Words:
    """What a reader sees of an exercise, in one language."""

    title: str
    task: str
    hint: str
    comment: str = ""  # what stands for the comment of the starter, where that is in another language


@dataclass(frozen=True)
class Mistake:
    """A wrong solution, and the code of what the check finds in it."""

    code: str
    finding: str


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter.

    Fields:
        id: its name, as `mosha learn show` and `check` take it.
        chapter: one of `CHAPTERS`.
        number: its place in the book, from 1.
        function: the name of the function that the reader writes.
        starter: what the file holds when the reader begins.
        solution: one that passes.
        mistakes: some that do not, each with what is found in it.
        words: title, task, hint and comment, in each language.

    >>> import mosha
    >>> first = mosha.classroom.list_exercises()[0]
    >>> first.number, first.describe("en").title != ""
    (1, True)
    """

    id: str
    chapter: str
    number: int
    function: str
    words: Mapping[Language, Words]
    starter: str
    solution: str
    mistakes: tuple[Mistake, ...]

    def describe(self, lang: Language | None = None) -> Words:
        """Title, task and hint in the language `lang` (None: the reader's).

        >>> find_exercise("odds").describe("en").title
        'What one answer can do to the odds'
        """
        return self.words[lang or current_language()]

    def begin(self, lang: Language | None = None) -> str:
        """The starter, with its comment in the language `lang` (None: the reader's).

        >>> print(find_exercise("k-ary-response").begin("zh"))
        def report(value, size, epsilon):
            # value 取 0 到 size - 1 之一，报告也一样
            ...
        <BLANKLINE>
        """
        comment = self.describe(lang).comment
        return re.sub(r"(?m)^( *# ).*$", rf"\g<1>{comment}", self.starter) if comment else self.starter

    def to_dict(self) -> dict[str, Any]:
        """The exercise as plain data, without its solution."""
        words = self.describe()
        return {
            "id": self.id,
            "number": self.number,
            "chapter": self.chapter,
            "title": words.title,
            "task": words.task,
            "hint": words.hint,
            "function": self.function,
            "starter": self.begin(),
        }


@cache
def list_exercises() -> tuple[Exercise, ...]:
    """All exercises, in the order of the book.

    >>> len(list_exercises())
    60
    """
    found: list[Exercise] = []
    for chapter in CHAPTERS:
        document = tomllib.loads((_FOLDER / f"{chapter}.toml").read_text(encoding="utf-8"))
        found += [_read(entry, chapter, len(found) + place) for place, entry in enumerate(document["exercise"], 1)]
    return tuple(found)


def find_exercise(name: str) -> Exercise:
    """The exercise whose id or number is `name`.

    >>> find_exercise("1").id
    'float-laplace'
    """
    for exercise in list_exercises():
        if name in {exercise.id, str(exercise.number)}:
            return exercise
    raise InvalidParameter("classroom.no_exercise", parameter="exercise", name=name)


def read_function(code: str, name: str, *, source: str = "the answer") -> Callable[..., object]:
    """The function of this name in a piece of Python; the code is the reader's own and is run as such.

    >>> read_function("def double(x): return 2 * x", "double")(4)
    8
    """
    names: dict[str, Any] = {"__name__": "answer"}
    exec(compile(code, source, "exec"), names)  # noqa: S102  (the reader's own program, on the reader's machine)
    found = names.get(name)
    if not callable(found):
        raise InvalidParameter("classroom.no_function", parameter="answer", function=name, source=source)
    function: Callable[..., object] = found
    return function


def _read(entry: Mapping[str, Any], chapter: str, number: int) -> Exercise:
    languages: tuple[Language, ...] = ("en", "zh")
    return Exercise(
        id=entry["id"],
        chapter=chapter,
        number=number,
        function=entry["function"],
        words={name: Words(**{part: text.strip() for part, text in entry[name].items()}) for name in languages},
        starter=entry["starter"].lstrip("\n"),
        solution=entry["solution"].lstrip("\n"),
        mistakes=tuple(Mistake(m["code"].lstrip("\n"), m["finding"]) for m in entry["mistakes"]),
    )
