"""Every solution passes, every planted mistake is found for the reason that is stated."""

from typing import Any

import pytest

from mosha import classroom
from mosha.classroom.exercises.exercise import CHAPTERS, Exercise, find_exercise, list_exercises, read_function
from mosha.core.errors import InvalidParameter
from mosha.core.language import LANGUAGES, keep_language, set_language

ALL = list_exercises()
MISTAKES = [(exercise, place) for exercise in ALL for place in range(len(exercise.mistakes))]


def check_code(exercise: Exercise, code: str) -> classroom.Verdict:
    return classroom.check(exercise, read_function(code, exercise.function))


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_the_solution_passes(exercise: Any) -> None:
    verdict = check_code(exercise, exercise.solution)
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize(("exercise", "place"), MISTAKES, ids=lambda it: it.id if isinstance(it, Exercise) else str(it))
def test_a_planted_mistake_is_found_for_its_reason(exercise: Any, place: Any) -> None:
    mistake = exercise.mistakes[place]
    verdict = check_code(exercise, mistake.code)
    assert [finding.code for finding in verdict.findings][:1] == [mistake.finding], str(verdict)


@pytest.mark.parametrize("exercise", ALL, ids=lambda exercise: exercise.id)
def test_what_one_begins_with_does_not_pass(exercise: Any) -> None:
    assert not check_code(exercise, exercise.starter)


def test_an_answer_that_raises_is_told_so_and_is_not_called_a_leak() -> None:
    verdict = check_code(find_exercise("float-laplace"), "def noisy_count(rows, epsilon):\n    return 1 / 0\n")
    assert [finding.code for finding in verdict.findings] == ["error"]


def test_comments_of_a_starter_are_in_the_language_of_the_reader() -> None:
    told = [exercise for exercise in ALL if "# " in exercise.starter]
    assert len(told) > 40
    for exercise in told:
        first, second = (
            [line for line in exercise.begin(language).splitlines() if "# " in line] for language in ("en", "zh")
        )
        assert len(first) == len(second) == 1
        assert any("\u4e00" <= letter <= "\u9fff" for letter in second[0]), exercise.id
        compile(exercise.begin("zh"), exercise.id, "exec")


def test_there_are_sixty_in_five_chapters_each_with_two_mistakes_or_more() -> None:
    assert len(ALL) == 60
    assert {exercise.chapter for exercise in ALL} == set(CHAPTERS)
    assert all(len(exercise.mistakes) >= 2 for exercise in ALL)
    assert len({exercise.id for exercise in ALL}) == len(ALL)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_exercise_speaks_both_languages(language: Any) -> None:
    for exercise in ALL:
        words = exercise.describe(language)
        assert all((words.title, words.task, words.hint))
        assert any("一" <= letter <= "鿿" for letter in words.task) == (language == "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_findings_are_whole_sentences_in_both_languages(language: Any) -> None:
    with keep_language():
        set_language(language)
        for exercise in ALL[:12]:
            verdict = check_code(exercise, exercise.mistakes[0].code)
            assert "classroom." not in str(verdict)
            assert "{" not in str(verdict)


def test_the_first_lesson_shows_at_least_four_where_one_is_claimed() -> None:
    """With 10,000 runs and a chance of 1e-9 for a false alarm; 200,000 runs at 0.999 show 8.16."""
    exercise = find_exercise("float-laplace")
    (finding,) = check_code(exercise, exercise.starter).findings
    assert finding.code == "leak"
    assert float(finding.fields["shown"]) >= 4  # type: ignore[arg-type]


def test_an_unknown_exercise_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="mosha learn list"):
        classroom.check("no such thing", len)


def test_a_file_without_the_function_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="noisy_count"):
        read_function("x = 1", "noisy_count")
