"""Questions as developers ask them, written by hand, with every place that answers them.

`questions/` has a file for each repository that is measured on, `questions/development/` one for each that
weights are fitted on: its name, the commit that was read, and the questions. An answer is `path:Symbol`,
`path:Container.Symbol`, or `path` alone where the whole file answers.
"""

import shutil
import tomllib
from pathlib import Path
from typing import Any, Final, Literal, get_args

from code_questions import Place, Question

Kind = Literal["what", "where", "how", "error", "identifier", "path", "vague"]

FOLDER: Final = Path(__file__).with_name("questions")
KINDS: Final[tuple[str, ...]] = get_args(Kind)


def questions_about(repository: str) -> list[Question]:
    """By the name of its folder. Raises ValueError."""
    return [_question(entry) for entry in read(repository)["question"]]


def read(repository: str) -> dict[str, Any]:
    (file,) = FOLDER.rglob(f"{repository}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def prepare_whole(repository: Path, copy: Path) -> list[Question]:
    """Copy a repository as it is. Returns what is asked about it."""
    shutil.copytree(repository, copy, ignore=shutil.ignore_patterns(".git"), symlinks=True)
    return questions_about(repository.name)


def _question(entry: dict[str, Any]) -> Question:
    kind, text, answers = entry["kind"], entry["text"], entry["answers"]
    if kind not in KINDS:
        raise ValueError(f"no kind {kind!r}: {text}")
    if not answers:
        raise ValueError(f"no answer: {text}")
    return Question(text, tuple(map(_place, answers)), kind)


def _place(answer: str) -> Place:
    path, _, symbol = answer.partition(":")
    container, _, name = symbol.rpartition(".")
    return Place(path, container, name)
