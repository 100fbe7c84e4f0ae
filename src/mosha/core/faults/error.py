"""What every error is: data first, a sentence second. The tree of errors stands in `errors.py`."""

from __future__ import annotations

import os
import re
from typing import Any, Literal, Self

from mosha.core.language import Language, current_language, is_code, say

__all__ = ["MoshaError", "Spent"]

Spent = Literal["nothing", "paid", "waits"]

_HIDDEN = ("mosha", "IPython")
"""Folders of frames that a notebook does not show: the library's and the notebook's own."""


class MoshaError(Exception):
    """The root: `except MoshaError` catches all that Mosha raises on purpose.

    Args:
        code: which error it is (`folder.words`, listed in the reference); it never changes.
        parameter: the name of the argument that is wrong.
        account: the name of the account that it is about.
        spent: "nothing", "paid" (the price stays paid) or "waits" (the payment waits for its key); None if money does
            not come into it.
        public: the public facts that the sentence names.

    >>> from mosha.errors import InvalidParameter
    >>> error = InvalidParameter("core.not_positive", parameter="epsilon", value=-1.0)
    >>> error.code, error.parameter, error.public
    ('core.not_positive', 'epsilon', {'value': -1.0})
    >>> print(error)
    epsilon must be above zero, not -1.
    """

    spent: Spent | None = None
    retry_key: str | None = None
    """The key of a payment that waits for its answer: a release under it is free."""
    nearest: str | None = None
    """A query like the one that is wrong, which is answered, where one was found."""

    def __init__(
        self,
        code: str = "",
        /,
        *,
        parameter: str | None = None,
        account: str | None = None,
        spent: Spent | None = None,
        **public: object,
    ) -> None:
        super().__init__(code)
        self.code = code if is_code(code) else re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()
        self.parameter = parameter
        self.account = account
        if spent is not None:
            self.spent = spent
        self.public = public

    def render(self, lang: Language | None = None) -> str:
        """The sentence, in the language `lang` (None: the chosen one).

        >>> from mosha.errors import InvalidParameter
        >>> InvalidParameter("core.not_positive", parameter="epsilon", value=-1.0).render("zh")
        'epsilon 必须大于零，不能是 -1。'
        """
        language = lang or current_language()
        if is_code(self.args[0] if self.args else ""):
            said = say(self.code, language, **self._fields())
        else:
            said = str(self.args[0]) if self.args else say(f"core.{self.code}", language)
        closing = self._close(language)
        said = f"{said}{'' if language == 'zh' or not closing else ' '}{closing}"
        return said if self.nearest is None else f"{said} {say('core.ask_instead', language, nearest=self.nearest)}"

    def _close(self, language: Language) -> str:
        """What became of the money."""
        if self.retry_key is not None:
            return say("core.closing_key", language, key=self.retry_key)
        return "" if self.spent is None else say(f"core.closing_{self.spent}", language)

    def _fields(self) -> dict[str, Any]:
        named = {"parameter": self.parameter, "account": self.account}
        return {name: value for name, value in named.items() if value is not None} | self.public

    def __str__(self) -> str:
        return self.render()

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the lines of the reader's own code, and the sentence (MOSHA_TRACEBACK=1 shows all)."""
        import traceback  # noqa: PLC0415  (only notebooks need it)

        if os.environ.get("MOSHA_TRACEBACK"):
            return traceback.format_exception(self)
        frames = [
            one for one in traceback.extract_tb(self.__traceback__) if not set(_HIDDEN) & set(_split(one.filename))
        ]
        shown = [f"----> {one.lineno} {one.line}" for one in frames if one.line]
        return [*shown, "", f"\x1b[31m{type(self).__name__}\x1b[0m: {self}"]

    def to_dict(self) -> dict[str, Any]:
        """The error for programs: its kind, its code, its sentence and its public fields."""
        own = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "public"}
        named = {"code": self.code, "spent": self.spent} | own
        said = {name: value for name, value in named.items() if value is not None}
        return {"error": type(self).__name__, "message": str(self), **said, **self.public}

    def with_spent(self, spent: Spent) -> Self:
        """The same error, where something else became of the money."""
        self.spent = spent
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """An error must survive the way back from a worker process, whatever its constructor looks like."""
        return _revive, (type(self), self.args, vars(self))


def _split(file: str) -> list[str]:
    """The folders of a file, on every system."""
    return re.split(r"[\\/]", file)


def _revive(kind: type[MoshaError], arguments: tuple[object, ...], attributes: dict[str, object]) -> MoshaError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error
