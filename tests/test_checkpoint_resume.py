"""Resuming from a checkpoint: each level within its tokens, and a score that says what did not survive."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextd.adapters.tokens import O200kCounter
from contextd.domain.callers import Caller
from contextd.domain.records import Entry, Hit, Json, Project, Record
from contextd.edge.call_pipeline import CallPipeline
from contextd.services.archive import Archive
from contextd.services.checkpoint_levels import CONTEXT_TOKENS, SUMMARY_TOKENS
from contextd.services.checkpoint_resume import Resumption, headline
from contextd.services.checkpoints import KIND, TESTED, Checkpoints, Draft
from contextd.services.shortening import Shortener
from contextd.wiring import House

pytestmark = pytest.mark.anyio

TOKENS = O200kCounter()
SHOP = "/home/dev/shop"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HEAD = {"id", "level", "summary", "project_path", "created_at", "fidelity", "questions", "tokens_used"}


def kept(
    description: str = "",
    content: str = "",
    context: Mapping[str, Json] | None = None,
    state: Mapping[str, Json] | None = None,
    summary: str = "where it stands",
    project_path: str = SHOP,
    tags: Sequence[str] = (),
) -> Record:
    return Record(
        id="cp-0123456789ab-1m7pmjnqx4p605079",
        kind=KIND,
        project=Project("0123456789ab", project_path),
        title=summary,
        text=content,
        fields={
            "description": description,
            "content": content,
            "project_path": project_path,
            "context": dict(context or {}),
            "state": dict(state or {}),
        },
        created_at=NOON,
        updated_at=NOON,
        tags=tuple(tags),
    )


def cost(answer: Mapping[str, Json]) -> int:
    return TOKENS.count(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


async def restored(pipeline: CallPipeline, id: str, level: str = "context", **more: Any) -> dict[str, Any]:
    answer = await pipeline.call("checkpoint_restore", {"id": id, "level": level, **more}, Caller())
    return {**answer.data, **answer.envelope()}


async def saved(pipeline: CallPipeline, **more: Any) -> dict[str, Any]:
    ask = {"summary": "where it stands", "project_path": SHOP, **more}
    return (await pipeline.call("checkpoint_save", ask, Caller())).data


# --- levels ---------------------------------------------------------------------------


def texts(most: int) -> st.SearchStrategy[str]:
    """Of any length up to the limit: short ones, and ones that repeat something up to it."""
    seeds = st.text(min_size=1, max_size=30) | st.sampled_from(
        [
            "word ",
            "We chose X instead of Y. ",
            "`make a-b` ",
            "漢字",
            "🙂",
            "\x01",
            '\\"',
            "a/b.py\n",
            "Next: do it.\n",
        ]
    )
    return st.text(max_size=min(most, 60)) | st.builds(
        lambda seed, size: (seed * (size // len(seed) + 1))[:size], seeds, st.integers(0, most)
    )


Records = st.builds(
    kept,
    description=texts(5_000),
    content=texts(20_000),
    context=st.dictionaries(texts(100), texts(1_000) | st.lists(texts(100), max_size=5), max_size=50),
    state=st.dictionaries(texts(50), texts(2_000), max_size=4),
    summary=texts(500),
    project_path=texts(4_096).map(lambda text: f"/{text}"),
    tags=st.lists(texts(50), max_size=20),
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(Records)
def test_every_level_is_within_its_tokens_whatever_the_checkpoint_holds(record: Record) -> None:
    resume = Resumption(record, TOKENS).context()
    assert cost(resume.answer) <= CONTEXT_TOKENS - 40
    line = headline(record, {"fidelity": resume.fidelity.share, "questions": 60}, TOKENS)
    assert cost(line) <= SUMMARY_TOKENS - 10


@settings(max_examples=60, deadline=None)
@given(texts(4_000), st.integers(10, 600))
def test_a_text_is_shortened_to_its_room(text: str, room: int) -> None:
    shortener = Shortener(TOKENS)
    for shown in (shortener.head(text, room), shortener.tail(text, room), shortener.middle(text, room)):
        assert shortener.cost(shown) <= room
        assert shown == text or len(shown) <= len(text)
    assert shortener.cost(shortener.values({"a": text, "b": [text], "c": 1}, room)) <= room


def test_a_long_description_keeps_its_beginning_and_its_end() -> None:
    middle = " ".join(f"Sentence number {number} says a little." for number in range(400))
    shown = Shortener(TOKENS).middle(f"It began well. {middle} It ended well.", 200)
    assert shown.startswith("It began well. ")
    assert shown.endswith("It ended well.")
    assert "[…]" in shown


async def test_a_level_has_its_own_fields_and_no_others(pipeline: CallPipeline) -> None:
    made = await saved(
        pipeline,
        description="Tests: make test",
        content="$ make lint",
        state={"k": 1},
        context={"branch": "x"},
    )
    summary, context, full = [
        await restored(pipeline, made["id"], level) for level in ("summary", "context", "full")
    ]
    assert set(summary) == HEAD
    assert set(context) == HEAD | {"description", "context", "tags", "essentials"}
    assert set(full) == HEAD | {"description", "context", "tags", "content", "state"}
    assert (full["content"], full["state"]) == ("$ make lint", {"k": 1})
    assert context["essentials"] == {"commands": ["make lint"]}
    assert summary["fidelity"] == context["fidelity"] == full["fidelity"] == made["fidelity"] == 1.0
    assert summary["questions"] == context["questions"] == full["questions"] == 2


async def test_full_is_whole_however_long_and_context_stays_small(pipeline: CallPipeline) -> None:
    content = "\n".join(f"line {number} of a long transcript" for number in range(20_000))
    made = await saved(pipeline, content=f"{content}\nrun `make the-last`")
    assert (await restored(pipeline, made["id"]))["tokens_used"] < 200
    full = await restored(pipeline, made["id"], "full")
    assert full["tokens_used"] <= CONTEXT_TOKENS
    assert full["truncated"]
    assert full["refs"]


async def test_a_smaller_budget_gets_a_smaller_resume_and_not_a_cut_one(pipeline: CallPipeline) -> None:
    content = "\n\n".join(f"`make target-number-{number}`" for number in range(60))
    made = await saved(pipeline, description="word " * 700, content=content)
    small = await restored(pipeline, made["id"], token_budget=600)
    assert small["tokens_used"] <= 600
    assert "refs" not in small
    assert small["shortened"] == ["description"]
    assert small["fidelity"] < made["fidelity"]


# --- essentials -----------------------------------------------------------------------


async def test_a_command_that_only_the_content_holds_comes_back_at_level_context(
    pipeline: CallPipeline,
) -> None:
    made = await saved(
        pipeline,
        description="Sign-in works. Chose cookies.",
        content="assistant: I ran it.\n\nuser: ok\n\ntool: $ go test -race ./internal/auth/...\nok 1.2s\n",
        state={"notes": {"decision": "tokens live an hour"}},
    )
    answer = await restored(pipeline, made["id"])
    assert answer["essentials"]["commands"] == ["go test -race ./internal/auth/..."]
    assert answer["essentials"]["decisions"] == ["tokens live an hour"]


def test_what_the_description_says_is_not_said_again() -> None:
    record = kept(
        description="We chose cookies instead of local storage. Tests: make test.",
        content="So we chose cookies, instead of the local storage.\n\n$ make test\n\n$ make lint",
    )
    assert Resumption(record, TOKENS).context().answer["essentials"] == {"commands": ["make lint"]}


def test_without_essentials_the_same_checkpoint_answers_less() -> None:
    record = kept(description="It works.", content="$ make lint\n\nWe use one queue instead of two.")
    resumption = Resumption(record, TOKENS)
    assert resumption.context().fidelity.share == 1.0
    bare = resumption.context(with_essentials=False)
    assert bare.fidelity.share == 0.0
    assert "essentials" not in bare.answer


# --- the score ------------------------------------------------------------------------


def too_much() -> dict[str, Any]:
    return {
        "description": " ".join(
            f"The part with number {number} was looked at closely." for number in range(90)
        ),
        "context": {f"note {number}": f"value {number} " * 40 for number in range(30)},
        "content": "\n\n".join(
            f"We use library-{n} instead of framework-{n} for module-{n}.\n\n"
            f"$ make --directory=services/part-{n} integration-test-{n}"
            for n in range(60)
        ),
    }


async def test_the_score_falls_when_there_is_too_much_to_hold_and_says_what_is_missing(
    pipeline: CallPipeline, house: House
) -> None:
    made = await saved(pipeline, **too_much())
    assert 0.1 < made["fidelity"] < 1.0
    assert 1 <= len(made["unanswered"]) <= 3
    answer = await restored(pipeline, made["id"])
    assert answer["fidelity"] == made["fidelity"]
    assert answer["questions"] == 60
    assert 1 <= len(answer["unanswered"]) <= 5
    assert all("____" in each or "Which" in each for each in answer["unanswered"])
    tested: Any = (await house.checkpoints.restore(made["id"], Caller())).fields[TESTED]
    assert tested["questions"] == 60
    assert sum(tested["unanswered"].values()) == round((1 - made["fidelity"]) * 60)
    assert set(tested["unanswered"]) <= {"decision", "command", "file", "next_step", "error"}


async def test_what_is_told_as_missing_is_known_once_it_is_in_the_description(
    pipeline: CallPipeline,
) -> None:
    made = await saved(pipeline, **too_much())
    missing = [each.partition(": ")[2] for each in made["unanswered"]]
    again = await saved(pipeline, **{**too_much(), "description": "\n".join(missing)})
    assert again["fidelity"] > made["fidelity"]
    answer = await restored(pipeline, again["id"])
    assert all(each in answer["description"] for each in missing)


async def test_a_checkpoint_with_nothing_to_ask_has_no_score(pipeline: CallPipeline) -> None:
    made = await saved(pipeline, description="All quiet.")
    assert made["fidelity"] is None
    assert made["unanswered"] == []
    answer = await restored(pipeline, made["id"])
    assert answer["fidelity"] is None
    assert answer["questions"] == 0
    assert "unanswered" not in answer


async def test_checkpoints_from_before_the_test_are_tested_when_they_are_restored(
    pipeline: CallPipeline, house: House
) -> None:
    made = await saved(pipeline, description="Tests: make test")
    record = await house.checkpoints.restore(made["id"], Caller())
    older = {name: value for name, value in record.fields.items() if name != TESTED}
    await house.store.put([Entry(replace(record, fields=older))])
    for level in ("summary", "context", "full"):
        answer = await restored(pipeline, made["id"], level)
        assert (answer["fidelity"], answer["questions"]) == (1.0, 1)


async def test_no_secret_comes_back_through_a_fact(pipeline: CallPipeline) -> None:
    secret = "ghp_" + "a1B2" * 9
    content = (
        f"$ curl -H 'Authorization: Bearer {secret}' https://x.example.com\n\nDecision: use {secret} here."
    )
    made = await saved(pipeline, content=content, state={"command": f"deploy --token {secret}"})
    shown = json.dumps(
        [made, *[await restored(pipeline, made["id"], each) for each in ("context", "full")]]
    )
    assert secret not in shown
    assert "[REDACTED:" in shown
    assert "curl -H" in shown


class Nothing:
    async def find(self, query: str, caller: Caller, project_path: str | None, limit: int) -> list[Hit]:
        return []


class Watched:
    """A counter that notes which threads it counts in."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def count(self, text: str) -> int:
        self.threads.add(threading.get_ident())
        return TOKENS.count(text)


async def test_a_long_checkpoint_is_read_in_a_thread_and_written_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive(house.store, house.embeddings, house.scrubber, house.telemetry, house.clock)
    written: list[Record] = []
    put = house.store.put

    async def counted(entries: Sequence[Entry]) -> None:
        written.extend(entry.record for entry in entries)
        await put(entries)

    monkeypatch.setattr(house.store, "put", counted)
    for content, is_aside in (("$ make test\n" * 2_000, True), ("$ make test", False)):
        counter = Watched()
        made = await Checkpoints(archive, Nothing(), counter).save(
            Draft("s", SHOP, content=content), Caller()
        )
        assert (threading.get_ident() not in counter.threads) is is_aside
        assert written.pop() == made.record
        assert written == []
        assert TESTED in made.record.fields
