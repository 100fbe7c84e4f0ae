"""`mosha learn`: exercises that check themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mosha.cli.terminal import Json, console, write_json
from mosha.core.errors import InvalidParameter
from mosha.core.language import say

if TYPE_CHECKING:
    from mosha.classroom.exercises.exercise import Exercise

__all__ = ["app"]

NOT_PASSED = 3

app = typer.Typer(help="Learn by doing: sixty exercises that check themselves.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The name or the number of an exercise.")]


@app.command("list")
def list_all(
    *,
    chapter: Annotated[str | None, typer.Option("--chapter", help="Exercises of this chapter only.")] = None,
    as_json: Json = False,
) -> None:
    """List the exercises, by chapter."""
    from mosha.classroom.exercises.exercise import CHAPTERS, list_exercises  # noqa: PLC0415

    if chapter is not None and chapter not in CHAPTERS:
        raise InvalidParameter("classroom.no_chapter", parameter="chapter", name=chapter, chapters=list(CHAPTERS))
    chosen = [exercise for exercise in list_exercises() if chapter in {None, exercise.chapter}]
    if as_json:
        write_json([exercise.to_dict() for exercise in chosen])
        return
    shown = console()
    for name in CHAPTERS:
        of_chapter = [exercise for exercise in chosen if exercise.chapter == name]
        if of_chapter:
            shown.print(say(f"classroom.chapter_{name}"))
        for exercise in of_chapter:
            shown.print(f"  {exercise.number:>2}  {exercise.id:<24} {exercise.describe().title}")


@app.command("show")
def show_exercise(
    exercise: Name,
    *,
    hint: Annotated[bool, typer.Option("--hint", help="Show the hint too.")] = False,
    solution: Annotated[bool, typer.Option("--solution", help="Show a solution.")] = False,
    as_json: Json = False,
) -> None:
    """Show the task of an exercise and what to begin with."""
    found = _find(exercise)
    words = found.describe()
    if as_json:
        write_json(found.to_dict() | ({"solution": found.solution} if solution else {}))
        return
    shown = console()
    shown.print(f"{found.number}. {words.title}\n\n{words.task}\n\n{found.begin()}")
    if hint:
        shown.print(say("classroom.hint", hint=words.hint))
    if solution:
        shown.print(say("classroom.solution", code=found.solution))
    shown.print(say("classroom.next", name=found.id))


@app.command("start")
def start_exercise(
    exercise: Name,
    *,
    out: Annotated[Path | None, typer.Option("--out", help="The file to write; EXERCISE.py by default.")] = None,
    notebook: Annotated[bool, typer.Option("--notebook", help="Write a Jupyter notebook.")] = False,
    as_json: Json = False,
) -> None:
    """Write a file, or a notebook, to begin an exercise with."""
    found = _find(exercise)
    path = out or Path(f"{found.id}.{'ipynb' if notebook else 'py'}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(_notebook(found) if notebook else found.begin())
    except FileExistsError:
        raise InvalidParameter("classroom.file_exists", parameter="out", path=str(path)) from None
    if as_json:
        write_json({"exercise": found.id, "path": str(path)})
    else:
        console().print(say("classroom.written", path=str(path), name=found.id))


@app.command("check")
def check_answer(
    exercise: Name,
    answer: Annotated[Path | None, typer.Argument(help="Your file; EXERCISE.py by default.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Check an answer. Exit code 3 if it does not pass yet."""
    from mosha.classroom.exercises.exercise import read_function  # noqa: PLC0415
    from mosha.classroom.verdict import check  # noqa: PLC0415

    found = _find(exercise)
    path = answer or Path(f"{found.id}.py")
    if not path.is_file():
        raise InvalidParameter("classroom.no_answer_file", parameter="answer", path=str(path), exercise=found.id)
    try:
        function = read_function(_read_answer(path), found.function, source=str(path))
    except InvalidParameter:
        raise
    except Exception as error:  # noqa: BLE001  (whatever the reader's own file raises)
        kind, message = type(error).__name__, str(error)
        raise InvalidParameter(
            "classroom.answer_broken", parameter="answer", path=str(path), kind=kind, message=message
        ) from None
    verdict = check(found, function)
    if as_json:
        write_json(verdict.to_dict())
    else:
        console().print(str(verdict))
    if not verdict.passed:
        raise typer.Exit(NOT_PASSED)


def _read_answer(path: Path) -> str:
    """The Python of a file; of a notebook, the cell that holds the answer."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = [cell for cell in json.loads(text)["cells"] if cell.get("id") == "answer"]
    return "".join("".join(cell["source"]) for cell in cells)


def _find(name: str) -> Exercise:
    from mosha.classroom.exercises.exercise import find_exercise  # noqa: PLC0415

    return find_exercise(name)


def _notebook(exercise: Exercise) -> str:
    words = exercise.describe()
    told = f"# {exercise.number}. {words.title}\n\n{words.task}"
    check = f'from mosha import classroom\n\nclassroom.check("{exercise.id}", {exercise.function})'
    cells = [
        {"cell_type": "markdown", "id": "task", "metadata": {}, "source": told},
        _code_cell("answer", exercise.begin()),
        _code_cell("check", check),
        {"cell_type": "markdown", "id": "hint", "metadata": {}, "source": say("classroom.hint", hint=words.hint)},
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
        indent=1,
        ensure_ascii=False,
    )


def _code_cell(name: str, source: str) -> dict[str, object]:
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {},
        "source": source,
        "outputs": [],
        "execution_count": None,
    }
