"""Where the answers of developers' questions stand in an index."""

from dataclasses import replace

from code_corpus import Repository
from code_questions import Place, Question


async def placed(repository: Repository) -> list[Question]:
    """With the line of every answer. Constants, for one, are often shown as a group."""
    store, indexed = repository.house.code.store, repository.indexed
    placed = []
    for question in repository.questions:
        answers: list[Place] = []
        for place in question.answers:
            rows = await store.defined(indexed.project, indexed.trees, place.name) if place.name else []
            own = [row for row in rows if (row.path, row.container) == (place.file, place.container)]
            answers += [replace(place, line=row.line) for row in own] or [place]
        placed.append(replace(question, answers=tuple(answers)))
    return placed
