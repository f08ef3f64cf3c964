"""What it costs to resume a session of about 50,000 tokens from its checkpoint, and what survives.

python bench/resume_cost.py

`transcript.md` is a session as an agent had it: it read this repository, changed it and ran its tests. The
checkpoint is saved as an agent would at the end: a description of about 160 words, and the transcript as
its content. Two sets of questions are put to what comes back: the checkpoint's own, made of its facts, and
some written by hand from reading the transcript. "Without essentials" is an answer that only repeats what
was written for it.

Commands and files must be there letter by letter, decisions and steps in most of their words: a description
that says the same in other words gets no point, so that the figures without essentials are a lower bound.
The checkpoint's own questions ask for what the essentials are made of; those by hand are the harder test.
The rules were adjusted while looking at this one session: it is an example, and no proof for others.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contextd.domain.callers import Caller
from contextd.domain.records import Json
from contextd.edge.call_pipeline import pipeline_of
from contextd.services.checkpoint_facts import Kind, facts, leaves
from contextd.services.checkpoint_questions import Answers, Question, asked, question
from contextd.services.checkpoint_resume import SECTIONS
from contextd.settings import load_settings
from contextd.wiring import build, open_house
from processes import UNLIMITED, data_folder, environment
from report import Check, Section, Table

_TRANSCRIPT: Final = Path(__file__).parent / "transcript.md"
_PROJECT: Final = "/home/dev/contextd"
_MOST_SHARE: Final = 0.04

SUMMARY: Final = (
    "checkpoint_list takes tags, since and until; the filter runs in the store, tests and docs are done"
)
DESCRIPTION: Final = """\
checkpoint_list can now be narrowed by tags and by a span of time. Narrowing the page after it came back
from the archive was a dead end: pages and total were wrong. So the filter goes down to the store through
Archive.page, where Filter already had tags, since and until; no store had to change. The span is over
created_at whatever sort_by says, since included and until not.

The inputs are strict, so pydantic's AwareDatetime refuses every text. There is a type Moment instead, text
with an offset; a time without an offset is refused and not taken for UTC. No index was added: with 10,000
checkpoints a list by tag takes about two milliseconds.

The page of the tool was generated again, the changelog has its line, ruff and mypy and the import contracts
are clean. Not proven yet: a real Qdrant server. checkpoint_search should get the same two fields next, and
the whole suite has to run before the pull request.
"""
CONTEXT: Final[dict[str, Json]] = {
    "branch": "feat/list-filters",
    "files": "src/contextd/tools/checkpoints.py, src/contextd/services/checkpoints.py",
    "status": "implemented, not yet reviewed",
}

BY_HAND: Final[tuple[tuple[Kind, str], ...]] = (
    ("decision", "the filter goes down to the store through Archive.page"),
    ("decision", "a timestamp without an offset is refused rather than taken for UTC"),
    ("decision", "since included and until not"),
    ("decision", "the span is always over created_at"),
    ("decision", "no index, we keep the schema as it is"),
    ("decision", "rejected lax mode because it would take numbers as seconds since 1970"),
    ("decision", "the tool parses once and the service must not know about text"),
    ("decision", "total and the pages have to stay right when a filter is on"),
    ("decision", "called since and until, not after and before"),
    ("command", ".venv/bin/pytest -q tests/test_checkpoints.py"),
    ("command", ".venv/bin/mypy src/contextd/tools/checkpoints.py src/contextd/tools/fields.py"),
    ("command", "make docs"),
    ("command", "make test"),
    ("command", ".venv/bin/ruff check . && .venv/bin/ruff format --check ."),
    (
        "command",
        "CONTEXTD_TEST_QDRANT_URI=http://localhost:6333 .venv/bin/pytest -q tests/test_store_contract.py",
    ),
    ("command", ".venv/bin/pytest -q tests/test_docs.py tests/test_limits.py"),
    ("file", "src/contextd/tools/checkpoints.py"),
    ("file", "src/contextd/tools/fields.py"),
    ("file", "src/contextd/services/checkpoints.py"),
    ("file", "src/contextd/services/archive.py"),
    ("file", "src/contextd/domain/limits.py"),
    ("file", "tests/test_checkpoints.py"),
    ("file", "docs/tools/checkpoint_list.md"),
    ("file", "CHANGELOG.md"),
    ("file", "src/contextd/tools/validation.py"),
    ("next_step", "run the contract suite against a real Qdrant server"),
    ("next_step", "give checkpoint_search the same since and until"),
    ("next_step", "run the whole make test before the pull request"),
    ("next_step", "the hint after a bad moment should say nothing about lengths"),
    ("next_step", "open question whether until with a whole day includes that day"),
)
"""What a person would want to know on the next day, from reading the transcript."""


@dataclass(frozen=True, slots=True)
class Restored:
    level: str
    tokens: int
    answer: Mapping[str, Any]


async def measure() -> Section:
    transcript = _TRANSCRIPT.read_text(encoding="utf-8")
    with data_folder() as folder:
        async with open_house(
            build(load_settings(environment(folder, **UNLIMITED))), follows=False
        ) as house:
            whole = house.tokens.count(transcript)
            pipeline = pipeline_of(house)
            caller = Caller(session="bench")
            saved = await pipeline.call("checkpoint_save", _checkpoint(transcript), caller)
            restored: list[Restored] = []
            for level in ("summary", "context", "full"):
                ask = {"id": saved.data["id"], "level": level}
                answer = await pipeline.call("checkpoint_restore", ask, caller)
                restored.append(Restored(level, answer.tokens_used, answer.data))
    return _section(whole, restored, _own(transcript))


def _checkpoint(transcript: str) -> dict[str, Json]:
    return {
        "summary": SUMMARY,
        "description": DESCRIPTION,
        "context": CONTEXT,
        "project_path": _PROJECT,
        "tags": ["checkpoints", "filters"],
        "content": transcript,
    }


def _own(transcript: str) -> list[Question]:
    """The questions that the checkpoint asks itself."""
    found = facts(DESCRIPTION, transcript, CONTEXT, {}, _PROJECT)
    return [question(fact) for fact in asked(found)]


def _section(whole: int, restored: Sequence[Restored], own: Sequence[Question]) -> Section:
    context = next(each for each in restored if each.level == "context")
    by_hand = [Question(kind, "", answer) for kind, answer in BY_HAND]
    shares = [each.tokens / whole for each in restored]
    levels = Table(
        ("level", "tokens of the answer", "share of the transcript"),
        (
            ("the transcript", f"{whole:,}", ""),
            *((each.level, f"{each.tokens:,}", f"{each.tokens / whole:.2%}") for each in restored),
        ),
    )
    fidelity = context.answer["fidelity"]
    return Section(
        "Resuming from a checkpoint",
        f"One session of {whole:,} o200k tokens (`bench/transcript.md`). Fidelity, as checkpoint_restore"
        f" shows it: {fidelity} of {context.answer['questions']} questions. The answer of level full is the"
        " first one; what it leaves out is held under its refs.",
        (
            levels,
            _answered("the checkpoint's own", own, context),
            _answered("written by hand", by_hand, context),
        ),
        (
            Check(
                "a resume at level context",
                f"at most {_MOST_SHARE:.0%} of the transcript",
                f"{shares[1]:.2%}",
                shares[1] <= _MOST_SHARE,
            ),
        ),
    )


def _answered(name: str, questions: Sequence[Question], context: Restored) -> Table:
    bare = {key: value for key, value in context.answer.items() if key not in ("essentials", "unanswered")}
    ways = [Answers(text for _, text in leaves(each)) for each in (bare, context.answer)]
    kinds = [kind for kind in SECTIONS if any(each.kind == kind for each in questions)]

    def row(title: str, among: Sequence[Question]) -> tuple[str, ...]:
        right = [sum(way.has(each.kind, each.answer) for each in among) for way in ways]
        return (title, str(len(among)), *(f"{each} ({each / len(among):.0%})" for each in right))

    return Table(
        (f"questions: {name}", "asked", "without essentials", "with essentials"),
        (
            *(row(SECTIONS[kind], [each for each in questions if each.kind == kind]) for kind in kinds),
            row("all", questions),
        ),
    )


def main() -> None:
    section = asyncio.run(measure())
    print(section.markdown())
    for check in section.checks:
        print(
            f"{check.what}: {check.target}, measured {check.measured}, {'met' if check.met else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
