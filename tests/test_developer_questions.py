"""The set of developers' questions is whole: enough of every kind, each with answers, nothing twice."""

import re
from collections import Counter

import pytest

from developer_questions import FOLDER, KINDS, questions_about, read
from held_out import CHOSEN_ON, MEASURED_ON

MEASURED = sorted(file.stem for file in FOLDER.glob("*.toml"))
DEVELOPMENT = sorted(file.stem for file in FOLDER.glob("development/*.toml"))
NAMES = [*MEASURED, *DEVELOPMENT]


def test_the_questions_are_about_the_held_out_repositories() -> None:
    assert {read(name)["repository"] for name in MEASURED} == set(MEASURED_ON)
    assert {read(name)["repository"] for name in DEVELOPMENT} == set(CHOSEN_ON)
    assert all(re.fullmatch(r"[0-9a-f]{40}", read(name)["commit"]) for name in NAMES)


@pytest.mark.parametrize("names", [MEASURED, DEVELOPMENT])
def test_there_are_enough_questions_of_every_kind_about_every_repository(names: list[str]) -> None:
    kinds = {name: Counter(question.kind for question in questions_about(name)) for name in names}
    assert sum(each.total() for each in kinds.values()) >= 200
    for name in names:
        assert set(kinds[name]) == set(KINDS), name


def test_no_question_and_no_answer_comes_twice() -> None:
    questions = [question for name in NAMES for question in questions_about(name)]
    assert [text for text, count in Counter(each.text for each in questions).items() if count > 1] == []
    for question in questions:
        assert len(set(question.answers)) == len(question.answers), question.text


def test_a_question_does_not_give_its_answer_away() -> None:
    """Only those that ask by a name or a place, or paste an error, may say it."""
    for name in NAMES:
        for question in questions_about(name):
            if question.kind in ("what", "where", "how", "vague"):
                best = question.best
                qualified = f"{best.container}.{best.name}" if best.container else best.name
                assert not best.name or qualified not in question.text.split(), question.text
