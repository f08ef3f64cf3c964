"""Skills end to end over MCP: made, found, listed, changed, applied, deleted; and their versions."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextd.adapters.qdrant import QdrantStore
from contextd.domain.callers import Caller, Principal
from contextd.domain.errors import BadLength, Conflict, NotFound, RateLimited
from contextd.domain.records import SHARED, Entry
from contextd.domain.versions import Version
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.edge.mcp_library import library_of
from contextd.plugins import Extensions, load_extensions
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house
from running import KEYWORD_ONLY, Daemon, Session, running_daemon, running_stdio, structured

_numbers = itertools.count()
HERE = Caller(session="tests")


@pytest.fixture(scope="module")
def session(daemon: Daemon) -> Session:
    return daemon.session()


@pytest.fixture
def category() -> str:
    """Of the test's own, so that others' skills are not in the way."""
    return f"category {next(_numbers)}"


def draft(category: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"skill {next(_numbers)}",
        "description": "what it is for",
        "content": "# Steps\n\n1. Do it.",
        "version": "1.0.0",
        "author": "tests",
        "category": category,
        **more,
    }


def create(session: Session, category: str, **more: Any) -> dict[str, Any]:
    return structured(session.call("skill_create", **draft(category, **more)))


def listed(session: Session, category: str, **more: Any) -> list[dict[str, Any]]:
    skills: list[dict[str, Any]] = structured(session.call("skill_list", category=category, **more))[
        "skills"
    ]
    return skills


def names(session: Session, category: str, **more: Any) -> list[str]:
    return [skill["name"] for skill in listed(session, category, **more)]


def refusal(message: dict[str, Any]) -> dict[str, Any]:
    assert message["result"]["isError"] is True, message
    body: dict[str, Any] = message["result"]["structuredContent"]
    assert body["message"].startswith(f"[{body['category']}] ")
    return body


# --- the six tools --------------------------------------------------------------------


def test_a_skill_is_made_found_by_meaning_and_applied(session: Session, category: str) -> None:
    made = create(
        session,
        category,
        name="Find a data race",
        description="Two goroutines write the same memory",
        content="# Races\n\nRun the tests with `-race`.",
        prerequisites=["Go 1.21", "a test that fails sometimes"],
        expected_outcome="go test -race passes",
        tags=["go"],
        metadata={"level": 3, "links": ["a", "b"]},
    )
    create(session, category, name="Bake bread", description="Flour, water and time")
    assert made.keys() >= {"id", "name", "version", "token_count", "created_at"}
    assert made["token_count"] > 20
    answer = structured(
        session.call("skill_search", query="concurrent writes to a variable", category=category)
    )
    assert (answer["query"], answer["top_k"]) == ("concurrent writes to a variable", 5)
    assert [hit["name"] for hit in answer["results"]] == ["Find a data race", "Bake bread"]
    best = answer["results"][0]
    assert best.keys() == SEED_FIELDS | {"score", "distance"}
    assert best["metadata"] == {"level": 3, "links": ["a", "b"]}
    assert best["tags"] == ["go"]
    assert 0 <= best["score"] <= 1
    assert 0 <= best["distance"] <= 2
    applied = structured(session.call("skill_apply", id=best["id"]))
    assert applied["content"] == "# Races\n\nRun the tests with `-race`."
    assert applied["prerequisites"] == ["Go 1.21", "a test that fails sometimes"]
    assert applied["expected_outcome"] == "go test -race passes"
    assert (applied["usage_count"], applied["success_rate"]) == (1, None)


SEED_FIELDS = {
    "id",
    "name",
    "description",
    "content",
    "version",
    "author",
    "category",
    "prerequisites",
    "expected_outcome",
    "tags",
    "usage_count",
    "success_rate",
    "metadata",
    "created_at",
    "updated_at",
}


def test_use_and_success_are_counted_and_seen_at_once(session: Session, category: str) -> None:
    made = create(session, category)
    outcomes: list[bool | None] = [True, True, False, None]
    told = [structured(session.call("skill_apply", id=made["id"], success=good)) for good in outcomes]
    assert [answer["usage_count"] for answer in told] == [1, 2, 3, 4]
    assert [answer["success_rate"] for answer in told] == [1.0, 1.0, 0.6667, 0.6667]
    (shown,) = listed(session, category)
    assert (shown["usage_count"], shown["success_rate"]) == (4, 0.6667)
    (hit,) = structured(session.call("skill_search", query="for", category=category))["results"]
    assert (hit["usage_count"], hit["success_rate"]) == (4, 0.6667)


def test_lists_go_page_by_page(session: Session, category: str) -> None:
    for number in range(5):
        create(session, category, name=f"{category} step {number}")
    pages = [
        structured(session.call("skill_list", category=category, limit=2, offset=offset))
        for offset in (0, 2, 4, 6)
    ]
    shown = [[skill["name"][-1] for skill in page["skills"]] for page in pages]
    assert shown == [["4", "3"], ["2", "1"], ["0"], []]
    assert {(page["total"], page["limit"]) for page in pages} == {(5, 2)}
    assert [page["offset"] for page in pages] == [0, 2, 4, 6]
    assert pages[0]["skills"][0].keys() == SEED_FIELDS


def test_each_order_puts_its_best_first(session: Session, category: str) -> None:
    made = {name: create(session, category, name=f"{category} {name}")["id"] for name in "abcd"}
    for name, good in (("a", True), ("a", False), ("b", True), ("c", None), ("c", None), ("c", None)):
        session.call("skill_apply", id=made[name], success=good)
    session.call("skill_update", id=made["b"], description="changed")

    def order(sort_by: str, **more: Any) -> str:
        return "".join(name[-1] for name in names(session, category, sort_by=sort_by, **more))

    assert order("created_at") == "dcba"
    assert order("updated_at") == "bdca"
    assert order("usage_count") == "cabd"
    assert order("success_rate") == "bacd"
    assert [order("success_rate", limit=2, offset=offset) for offset in (0, 2, 4)] == ["ba", "cd", ""]
    page = structured(session.call("skill_list", category=category, sort_by="usage_count", limit=1))
    assert page["total"] == 4


def test_category_and_tags_narrow_lists_and_searches(session: Session, category: str) -> None:
    create(session, category, name=f"{category} both", tags=["go", "db"])
    create(session, category, name=f"{category} one", tags=["go"])
    create(session, f"{category} other", name=f"{category} elsewhere", tags=["go", "db"])
    assert set(names(session, category)) == {f"{category} both", f"{category} one"}
    assert names(session, category.upper()) == names(session, category)
    assert names(session, category, tags=["go", "db"]) == [f"{category} both"]
    assert names(session, category, tags=["rust"]) == []
    assert names(session, category, tags=["db"], sort_by="usage_count") == [f"{category} both"]
    found = structured(session.call("skill_search", query="what for", category=category, tags=["db"]))
    assert [hit["name"] for hit in found["results"]] == [f"{category} both"]


def test_detail_shortens_what_is_long_and_references_name_it_alone(session: Session, category: str) -> None:
    made = create(session, category, content="word " * 300, metadata={"k": "v"}, prerequisites=["p"])
    answers = [
        structured(session.call("skill_search", query="word", category=category, detail=detail))
        for detail in ("refs", "preview", "full")
    ]
    refs, preview, full = (answer["results"][0] for answer in answers)
    assert set(refs) == {"id", "name", "score"}
    assert "query" not in answers[0]
    assert [len(hit["content"]) for hit in (preview, full)] == [200, 1500]
    assert [hit["prerequisites"] for hit in (preview, full)] == [[], ["p"]]
    assert set(preview) == set(full)
    session.call("skill_apply", id=made["id"], success=True)
    used = structured(session.call("skill_search", query="word", category=category, detail="refs"))
    assert used["results"][0]["success_rate"] == 1.0


def test_deleting_takes_versions_and_outcomes_along(session: Session, category: str) -> None:
    arguments = draft(category)
    made = structured(session.call("skill_create", **arguments))
    session.call("skill_update", id=made["id"], content="new")
    session.call("skill_apply", id=made["id"], success=True)
    gone = structured(session.call("skill_delete", id=made["id"]))
    assert gone["id"] == made["id"]
    assert "2 versions" in gone["message"]
    assert "cannot be undone" in gone["message"]
    for tool in ("skill_delete", "skill_apply", "skill_update"):
        more = {"content": "x"} if tool == "skill_update" else {}
        assert refusal(session.call(tool, id=made["id"], **more))["category"] == "not_found"
    assert listed(session, category) == []
    again = structured(session.call("skill_create", **arguments))
    applied = structured(session.call("skill_apply", id=again["id"]))
    assert (applied["usage_count"], applied["version"]) == (1, "1.0.0")
    assert refusal(session.call("skill_apply", id=again["id"], version="1.0.1"))["category"] == "not_found"


# --- versions -------------------------------------------------------------------------


def test_an_update_makes_a_version_and_the_old_one_stays(session: Session, category: str) -> None:
    made = create(session, category, content="first", tags=["old"])
    first = structured(session.call("skill_update", id=made["id"], content="second", tags=["new"]))
    second = structured(session.call("skill_update", id=made["id"], version="2.0.0-rc.1", content="third"))
    third = structured(session.call("skill_update", id=made["id"], expected_outcome="done"))
    assert [each["version"] for each in (first, second, third)] == ["1.0.1", "2.0.0-rc.1", "2.0.0"]
    assert {each["id"] for each in (first, second, third)} == {made["id"]}
    assert first["updated_at"] > made["created_at"]
    contents = {
        version: structured(session.call("skill_apply", id=made["id"], version=version))["content"]
        for version in ("1.0.0", "1.0.1", "2.0.0-rc.1", "2.0.0")
    }
    assert list(contents.values()) == ["first", "second", "third", "third"]
    (shown,) = listed(session, category)
    assert (shown["version"], shown["content"], shown["tags"]) == ("2.0.0", "third", ["new"])
    assert shown["expected_outcome"] == "done"
    found = structured(session.call("skill_search", query="first second third", category=category))
    assert [hit["version"] for hit in found["results"]] == ["2.0.0"]


def test_a_version_that_is_not_kept_is_told_with_those_that_are(session: Session, category: str) -> None:
    made = create(session, category)
    session.call("skill_update", id=made["id"], version="1.5.0")
    error = refusal(session.call("skill_apply", id=made["id"], version="1.4.0"))
    assert error["category"] == "not_found"
    assert error["message"].endswith("these are kept: 1.5.0, 1.0.0")
    assert refusal(session.call("skill_apply", id=made["id"], version="newest"))["code"] == "VAL_009"
    (shown,) = listed(session, category)
    assert shown["usage_count"] == 0


@pytest.mark.parametrize("version", ["1.2.0", "1.2.0+build.7"])
def test_a_version_that_exists_is_a_conflict(session: Session, category: str, version: str) -> None:
    made = create(session, category, version="1.2.0")
    error = refusal(session.call("skill_update", id=made["id"], version=version))
    assert error["category"] == "conflict"
    assert error["message"].endswith("give a version above 1.2.0, or none for 1.2.1")


@pytest.mark.parametrize("version", ["1.1.9", "0.0.1", "1.2.0-rc.1"])
def test_a_version_below_the_current_one_is_refused(session: Session, category: str, version: str) -> None:
    made = create(session, category, version="1.2.0")
    error = refusal(session.call("skill_update", id=made["id"], version=version))
    assert (error["code"], error["details"]["field"]) == ("VAL_004", "version")
    assert "above 1.2.0" in error["message"]


@pytest.mark.parametrize(
    "version", ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "newest"]
)
def test_what_is_no_semantic_version_is_refused(session: Session, category: str, version: str) -> None:
    error = refusal(session.call("skill_create", **draft(category, version=version)))
    assert (error["code"], error["details"]["field"]) == ("VAL_009", "version")
    assert "MAJOR.MINOR.PATCH" in error["message"]
    made = create(session, category)
    assert refusal(session.call("skill_update", id=made["id"], version=version))["code"] == "VAL_009"


def test_a_version_without_room_for_the_next_asks_for_another(session: Session, category: str) -> None:
    longest = f"1.0.{'9' * 60}"
    made = create(session, category, version=longest)
    for _ in range(2):
        error = refusal(session.call("skill_update", id=made["id"], content="new"))
        assert (error["code"], error["details"]["field"]) == ("VAL_003", "version")
        assert "more than 64 characters" in error["message"]
    error = refusal(session.call("skill_update", id=made["id"], version=longest))
    assert error["message"].endswith(f"give a version above {longest}")
    updated = structured(session.call("skill_update", id=made["id"], content="new", version="1.1.0"))
    assert updated["version"] == "1.1.0"


PRECEDENCE = """
0.0.0 0.0.1 0.1.0 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11
1.0.0-rc.1 1.0.0 1.0.1-0 1.0.1-0.a 1.0.1--- 1.0.1 1.1.0 1.10.0 2.0.0
""".split()


def test_versions_are_ordered_as_their_specification_has_it() -> None:
    versions = [Version.parse(text) for text in PRECEDENCE]
    for (low, one), (high, other) in itertools.product(enumerate(versions), repeat=2):
        assert one.is_above(other) is (low > high)
    assert not Version.parse("1.0.0+a").is_above(Version.parse("1.0.0+b"))
    assert [str(version) for version in versions] == PRECEDENCE


@given(
    st.from_regex(
        r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}(-[0-9a-z.-]{1,8})?(\+[0-9a-z.-]{1,8})?", fullmatch=True
    )
)
def test_whatever_version_is_read_is_written_the_same_and_the_next_is_above(text: str) -> None:
    try:
        version = Version.parse(text)
    except ValueError:
        assert re.search(r"(^|\.|-)0[0-9]+|[-+.](\.|$|\+)", text)
        return
    assert str(version) == text
    assert version.next_patch().is_above(version)
    assert not version.is_above(version.next_patch())


# --- refusals -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "field"),
    [
        ("skill_create", {"name": "n" * 201}, "VAL_003", "name"),
        ("skill_create", {"name": "  "}, "VAL_003", "name"),
        ("skill_create", {"name": "con\nname: evil"}, "VAL_008", "name"),
        ("skill_create", {"author": "\x1b[31mred"}, "VAL_008", "author"),
        ("skill_create", {"description": "d" * 2001}, "VAL_003", "description"),
        ("skill_create", {"content": "c" * 50_001}, "VAL_003", "content"),
        ("skill_create", {"content": ""}, "VAL_003", "content"),
        ("skill_create", {"author": ""}, "VAL_003", "author"),
        ("skill_create", {"category": " "}, "VAL_003", "category"),
        ("skill_create", {"tags": ["t"] * 21}, "VAL_003", "tags"),
        ("skill_create", {"tags": ["contextd:category=x"]}, "VAL_009", "tags"),
        ("skill_create", {"prerequisites": [1]}, "VAL_002", "prerequisites"),
        ("skill_create", {"metadata": {"k": "v" * 50_000}}, "VAL_003", "metadata"),
        ("skill_create", {"version": 1}, "VAL_002", "version"),
        ("skill_search", {"query": " "}, "VAL_010", "query"),
        ("skill_search", {"query": "q" * 1001}, "VAL_003", "query"),
        ("skill_search", {"query": "q", "top_k": 101}, "VAL_004", "top_k"),
        ("skill_search", {"query": "q", "detail": "all"}, "VAL_005", "detail"),
        ("skill_list", {"limit": 0}, "VAL_004", "limit"),
        ("skill_list", {"offset": -1}, "VAL_004", "offset"),
        ("skill_list", {"sort_by": "name"}, "VAL_005", "sort_by"),
        ("skill_update", {"id": "x"}, "VAL_001", "id"),
        ("skill_update", {"id": "x", "author": "me"}, "VAL_006", "author"),
        ("skill_update", {"id": "x", "tags": ["contextd:"]}, "VAL_009", "tags"),
        ("skill_apply", {"id": "x", "success": "yes"}, "VAL_002", "success"),
        ("skill_delete", {}, "VAL_001", "id"),
    ],
)
def test_wrong_input_names_its_field(
    session: Session, category: str, tool: str, arguments: dict[str, Any], code: str, field: str
) -> None:
    whole = {**draft(category), **arguments} if tool == "skill_create" else arguments
    error = refusal(session.call(tool, **whole))
    assert (error["code"], error["details"]["field"]) == (code, field)
    assert listed(session, category) == []


@pytest.mark.parametrize("missing", ["name", "description", "content", "version", "author", "category"])
def test_every_required_field_is_asked_for(session: Session, category: str, missing: str) -> None:
    arguments = {name: value for name, value in draft(category).items() if name != missing}
    error = refusal(session.call("skill_create", **arguments))
    assert (error["code"], error["details"]["field"]) == ("VAL_001", missing)


@pytest.mark.parametrize("tool", ["skill_apply", "skill_delete", "skill_update"])
@pytest.mark.parametrize("id", ["nope", "skill-shared-0", "cp-000000000000-0", "skill-..-x"])
def test_an_unknown_skill_is_not_found(session: Session, tool: str, id: str) -> None:
    more = {"content": "x"} if tool == "skill_update" else {}
    error = refusal(session.call(tool, id=id, **more))
    assert error["category"] == "not_found"
    assert error["message"].startswith("[not_found] skill not found: ")


def test_an_older_client_gets_a_protocol_error(daemon: Daemon) -> None:
    error = daemon.session("2025-06-18").call("skill_apply", id="nope")["error"]
    assert error["code"] == -32603
    assert error["data"]["category"] == "not_found"


def test_an_author_makes_a_name_once_and_others_may_too(session: Session, category: str) -> None:
    made = create(session, category, name="Deploy to production")
    for name in ("Deploy to production", "  deploy TO  production "):
        error = refusal(session.call("skill_create", **draft(category, name=name)))
        assert error["category"] == "conflict"
        assert error["details"] == {"id": made["id"]}
        assert f"skill_update and id {made['id']}" in error["message"]
    other = create(session, category, name="Deploy to production", author="others")
    assert other["id"] != made["id"]


def test_a_name_can_be_given_up_and_taken_but_not_shared(session: Session, category: str) -> None:
    old, new = f"{category} old", f"{category} new"
    first = create(session, category, name=old)
    assert structured(session.call("skill_update", id=first["id"], name=new))["id"] == first["id"]
    assert refusal(session.call("skill_create", **draft(category, name=new)))["category"] == "conflict"
    second = create(session, category, name=old)
    assert second["id"] != first["id"]
    taken = refusal(session.call("skill_update", id=second["id"], name=new))
    assert (taken["category"], taken["details"]) == ("conflict", {"id": first["id"]})
    respelt = structured(session.call("skill_update", id=second["id"], name=old.upper()))
    assert respelt["name"] == old.upper()


def test_a_secret_reaches_neither_the_answer_nor_the_disk(
    daemon: Daemon, session: Session, category: str
) -> None:
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
    made = create(session, category, content=f"export GITHUB_TOKEN={secret}", metadata={"t": secret})
    session.call("skill_update", id=made["id"], description=f"with {secret}")
    answer = session.rpc("tools/call", {"name": "skill_list", "arguments": {"category": category}})
    assert secret not in answer.text
    assert "[REDACTED:" in answer.text
    files = [path for path in daemon.data_dir.rglob("*") if path.is_file()]
    assert not any(secret.encode() in path.read_bytes() for path in files)


# --- at once --------------------------------------------------------------------------

Update = Callable[..., dict[str, Any]]


def at_once(clients: Sequence[Update], **arguments: Any) -> dict[str, dict[str, Any]]:
    """Each client, in a thread of its own, sends one update after the other; answers by their content."""

    def send(number: int) -> dict[str, dict[str, Any]]:
        contents = [f"update {turn} of client {number}" for turn in range(5)]
        return {content: clients[number](content=content, **arguments) for content in contents}

    with ThreadPoolExecutor(len(clients)) as pool:
        answers = list(pool.map(send, range(len(clients))))
    return {content: answer for each in answers for content, answer in each.items()}


def acknowledged(answers: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Version to content of the updates that were made; the others must be conflicts."""
    refused = [refusal(answer) for answer in answers.values() if answer["result"]["isError"]]
    assert {error["category"] for error in refused} <= {"conflict"}
    made = {content: answer for content, answer in answers.items() if not answer["result"]["isError"]}
    versions = {structured(answer)["version"]: content for content, answer in made.items()}
    assert len(versions) + len(refused) == len(answers)
    return versions


def updater(session: Session, id: str) -> Update:
    return lambda **arguments: session.call("skill_update", id=id, **arguments)


def test_of_clients_that_make_one_version_at_once_one_wins(daemon: Daemon, category: str) -> None:
    clients = [daemon.session() for _ in range(4)]
    made = create(clients[0], category, content="from the start")
    answers = at_once([updater(client, made["id"]) for client in clients], version="1.1.0")
    versions = acknowledged(answers)
    assert list(versions) == ["1.1.0"]
    (shown,) = listed(clients[0], category)
    assert (shown["version"], shown["content"]) == ("1.1.0", versions["1.1.0"])
    first = structured(clients[1].call("skill_apply", id=made["id"], version="1.0.0"))
    assert first["content"] == "from the start"


def test_updates_at_once_lose_nothing(daemon: Daemon, category: str) -> None:
    clients = [daemon.session() for _ in range(4)]
    made = create(clients[0], category)
    versions = acknowledged(at_once([updater(client, made["id"]) for client in clients]))
    assert set(versions) == {f"1.0.{number + 1}" for number in range(len(versions))}
    for version, content in versions.items():
        applied = structured(clients[0].call("skill_apply", id=made["id"], version=version))
        assert applied["content"] == content


def test_updates_at_once_in_two_processes_lose_nothing(tmp_path: Path) -> None:
    settings = {"CONTEXTD_RATE_LIMIT": "off", **KEYWORD_ONLY}
    with running_daemon(tmp_path, **settings) as daemon, running_stdio(tmp_path, **settings) as stdio:
        session = daemon.session()
        made = create(session, "c", content="from the start")

        def over_stdio(**arguments: Any) -> dict[str, Any]:
            params = {"name": "skill_update", "arguments": {"id": made["id"], **arguments}}
            return stdio.ask("tools/call", params)

        versions = acknowledged(at_once([updater(session, made["id"]), over_stdio]))
        assert set(versions) == {f"1.0.{number + 1}" for number in range(len(versions))}
        for version, content in {"1.0.0": "from the start", **versions}.items():
            assert stdio.call("skill_apply", id=made["id"], version=version)["content"] == content


def test_a_name_is_made_once_by_clients_at_once(daemon: Daemon, category: str) -> None:
    arguments = draft(category)
    clients = [daemon.session() for _ in range(6)]
    with ThreadPoolExecutor(len(clients)) as pool:
        answers = list(pool.map(lambda client: client.call("skill_create", **arguments), clients))
    assert [answer["result"]["isError"] for answer in answers].count(False) == 1
    assert len(listed(clients[0], category)) == 1


def test_of_clients_that_take_one_name_at_once_one_gets_it(daemon: Daemon, category: str) -> None:
    clients = [daemon.session() for _ in range(4)]
    ids = [create(client, category)["id"] for client in clients[1:]]
    takers = [
        lambda: clients[0].call("skill_create", **draft(category, name=f"{category} wanted")),
        lambda: clients[1].call("skill_update", id=ids[0], name=f"{category} wanted"),
        lambda: clients[2].call("skill_update", id=ids[1], name=f"{category}  Wanted"),
        lambda: clients[3].call("skill_update", id=ids[2], name=f"{category} WANTED"),
    ]
    with ThreadPoolExecutor(len(takers)) as pool:
        answers = [future.result() for future in [pool.submit(take) for take in takers]]
    refused = [refusal(answer) for answer in answers if answer["result"]["isError"]]
    assert [error["category"] for error in refused] == ["conflict"] * 3
    (holder,) = [skill for skill in listed(clients[0], category) if "wanted" in skill["name"].lower()]
    assert [error["details"] for error in refused] == [{"id": holder["id"]}] * 3


# --- as resources ---------------------------------------------------------------------


def test_a_skill_is_a_resource_in_the_format_of_agents(session: Session, category: str) -> None:
    made = create(session, category, name=f"Résumé {category}!", content="first")
    session.call("skill_update", id=made["id"], content="second")
    uri = f"contextd://skills/{made['id']}"
    listed = session.rpc("resources/list").json()["result"]["resources"]
    (mine,) = [resource for resource in listed if resource["uri"] == uri]
    assert mine["mimeType"] == "text/markdown"
    assert mine["name"] == f"resume-{category.replace(' ', '-')}"
    templates = session.rpc("resources/templates/list").json()["result"]["resourceTemplates"]
    assert "contextd://skills/{id}" in {template["uriTemplate"] for template in templates}
    for asked, content in ((uri, "second"), (f"{uri}@1.0.0", "first")):
        (found,) = session.rpc("resources/read", {"uri": asked}).json()["result"]["contents"]
        assert found["text"].startswith("---\nname: resume-")
        assert found["text"].endswith(f"---\n\n{content}\n")


def test_completion_knows_skills(session: Session, category: str) -> None:
    made = create(session, category, name=f"Completed {category}", tags=[f"tag {category}"])

    def completed(name: str, value: str, uri: str = "contextd://skills/{id}") -> list[str]:
        ref = {"type": "ref/resource", "uri": uri}
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        answer = session.rpc("completion/complete", params).json()["result"]["completion"]
        values: list[str] = answer["values"]
        return values

    assert completed("id", made["id"]) == [made["id"]]
    assert completed("name", f"Completed {category}") == [f"Completed {category}"]
    assert category in completed("category", category)
    assert category in completed("category", category, uri="contextd://checkpoints/{id}")
    assert completed("tags", f"tag {category}") == [f"tag {category}"]
    assert completed("nothing", "") == []


@pytest.fixture
def modern(daemon: Daemon) -> Iterator[Any]:
    """A client of the newer wire, which has no sessions."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }

    def ask(method: str, **params: Any) -> dict[str, Any]:
        headers = {"mcp_protocol_version": version, "mcp_method": method}
        if method == "resources/read":
            headers["mcp_name"] = params["uri"]
        message: dict[str, Any] = daemon.rpc(method, {**params, "_meta": meta}, **headers).json()
        return message

    yield ask


def test_skills_are_served_as_the_extension_has_them(modern: Any, session: Session, category: str) -> None:
    made = create(session, category, name=f"Served {category}", content="# Body", tags=["a", "b"])
    discovered = modern("server/discover")["result"]["capabilities"]
    assert discovered["extensions"]["io.modelcontextprotocol/skills"] == {}
    answer = modern("skills/list")["result"]
    assert (answer["ttlMs"], answer["cacheScope"]) == (0, "private")
    (entry,) = [each for each in answer["skills"] if made["id"] in each["uri"]]
    assert entry["uri"].endswith(f"/{entry['frontmatter']['name']}/SKILL.md")
    assert entry["frontmatter"]["metadata"]["tags"] == "a, b"
    assert modern("skills/get", uri=entry["uri"])["result"]["skill"] == entry
    (content,) = modern("resources/read", uri=entry["uri"])["result"]["contents"]
    assert content["mimeType"] == "text/markdown"
    (file,) = entry["resources"]
    assert file["size"] == len(content["text"].encode())
    assert file["uri"] == entry["uri"]
    for uri in ("skill://nope/x/SKILL.md", entry["uri"].replace("served", "other"), "file:///etc"):
        assert modern("skills/get", uri=uri)["error"]["code"] == -32602


def test_the_older_wire_serves_the_extension_too(session: Session, category: str) -> None:
    create(session, category)
    answer = session.rpc("skills/list").json()["result"]
    assert "ttlMs" not in answer
    uri = answer["skills"][0]["uri"]
    assert session.rpc("skills/get", {"uri": uri}).json()["result"]["skill"]["uri"] == uri
    assert session.rpc("skills/list", {"cursor": "x"}).json()["error"]["code"] == -32602
    unknown = session.rpc("resources/read", {"uri": "skill://a/b/SKILL.md"}).json()["error"]
    assert unknown["code"] == -32002


def test_the_older_path_of_the_automation_api_makes_a_skill(daemon: Daemon, category: str) -> None:
    answer = httpx2.post(f"{daemon.url}/mcp/skill/save", json=draft(category))
    assert answer.json()["result"]["version"] == "1.0.0"


# --- in process, on each store --------------------------------------------------------


@asynccontextmanager
async def furnished(folder: Path, store: str, **settings: Any) -> AsyncIterator[House]:
    extensions = load_extensions()
    if store == "qdrant":
        await _on_qdrant(extensions)
    chosen = Settings(data_dir=folder, **{"rate_limit": RateLimit(on=False), **settings})
    async with open_house(build(chosen, extensions)) as house:
        yield house


async def _on_qdrant(extensions: Extensions) -> None:
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(":memory:")
    extensions.stores["sqlite"] = lambda url, settings: QdrantStore(":memory:", client=client)


@pytest.fixture(params=["sqlite", "qdrant"])
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CallPipeline]:
    async with furnished(tmp_path, request.param) as house:
        yield pipeline_of(house)


async def call(pipeline: CallPipeline, name: str, /, **arguments: Any) -> dict[str, Any]:
    return (await pipeline.call(name, arguments, HERE)).data


on_each_store = pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant")


@pytest.mark.anyio
@on_each_store
async def test_the_whole_life_of_a_skill(pipeline: CallPipeline) -> None:
    made = await call(pipeline, "skill_create", **draft("Debugging", tags=["go"], content="alpha " * 100))
    await call(pipeline, "skill_create", **draft("cooking", content="bread"))
    for detail in ("refs", "preview", "full"):
        found = await call(
            pipeline, "skill_search", query="alpha", category="debugging", tags=["go"], detail=detail
        )
        assert [hit["id"] for hit in found["results"]] == [made["id"]]
    changes = {
        "name": "Renamed",
        "description": "new",
        "content": "beta",
        "category": "analysis",
        "prerequisites": ["x"],
        "expected_outcome": "y",
        "tags": [],
        "metadata": {"a": None},
    }
    assert (await call(pipeline, "skill_update", id=made["id"], **changes))["version"] == "1.0.1"
    for sort_by in ("created_at", "updated_at", "usage_count", "success_rate"):
        page = await call(pipeline, "skill_list", category="analysis", sort_by=sort_by)
        (shown,) = page["skills"]
        assert {name: shown[name] for name in changes} == changes
    assert (await call(pipeline, "skill_list", category="debugging"))["total"] == 0
    assert (await call(pipeline, "skill_apply", id=made["id"], success=False))["success_rate"] == 0
    old = await call(pipeline, "skill_apply", id=made["id"], version="1.0.0")
    assert old["content"] == "alpha " * 100
    assert "2 versions" in (await call(pipeline, "skill_delete", id=made["id"]))["message"]
    with pytest.raises(NotFound):
        await call(pipeline, "skill_delete", id=made["id"])
    assert (await call(pipeline, "skill_list"))["total"] == 1


@pytest.mark.anyio
@on_each_store
async def test_a_name_is_made_once_and_metadata_is_bounded(pipeline: CallPipeline) -> None:
    arguments = draft("c")
    await call(pipeline, "skill_create", **arguments)
    with pytest.raises(Conflict):
        await call(pipeline, "skill_create", **arguments)
    with pytest.raises(BadLength):
        await call(pipeline, "skill_create", **draft("c", metadata={"k": "v" * 50_000}))


@pytest.mark.anyio
async def test_listings_page_through_checkpoints_and_skills(tmp_path: Path) -> None:
    async with furnished(tmp_path, "sqlite") as house:
        pipeline = pipeline_of(house)
        for number in range(30):
            await call(pipeline, "checkpoint_save", summary=f"s{number}", project_path="/srv/a")
        for _ in range(51):
            await call(pipeline, "skill_create", **draft("c"))
        library = library_of(house)
        pages = [await library.resources(HERE, cursor) for cursor in (None, "50")]
        first = await library.skills(HERE, None)
        second = await library.skills(HERE, first["nextCursor"])
    assert [page.next_cursor for page in pages] == ["50", None]
    uris = [[resource.uri for resource in page.resources] for page in pages]
    kinds = [[uri.split("/")[2] for uri in page if "/tools/" not in uri] for page in uris]
    assert kinds == [["checkpoints"] * 30 + ["skills"] * 20, ["skills"] * 31]
    assert len({uri for page in uris for uri in page}) == sum(map(len, uris))
    assert (len(first["skills"]), len(second["skills"])) == (50, 1)
    assert "nextCursor" not in second


@pytest.mark.anyio
async def test_a_skill_that_goes_while_it_is_updated_leaves_nothing(tmp_path: Path) -> None:
    async with furnished(tmp_path, "sqlite") as house:
        pipeline = pipeline_of(house)
        made = await call(pipeline, "skill_create", **draft("c"))
        put = house.store.put

        async def put_after_a_deletion(entries: Any) -> None:
            await call(pipeline, "skill_delete", id=made["id"])
            await put(entries)

        house.store.put = put_after_a_deletion  # type: ignore[method-assign]  # the other client comes in between
        with pytest.raises(NotFound):
            await call(pipeline, "skill_update", id=made["id"], content="late")
        (drawer,) = await house.store.drawers()
        assert drawer.counts == {}


@pytest.mark.anyio
@on_each_store
async def test_names_are_taken_one_after_the_other(pipeline: CallPipeline) -> None:
    ids = [(await call(pipeline, "skill_create", **draft("c")))["id"] for _ in range(3)]
    made = draft("c", name="wanted")
    answers = await asyncio.gather(
        *(call(pipeline, "skill_update", id=id, name="wanted") for id in ids),
        call(pipeline, "skill_create", **made),
        return_exceptions=True,
    )
    (taken,) = [answer for answer in answers if not isinstance(answer, Conflict)]
    assert isinstance(taken, dict)
    # Who gives a name up leaves it to whoever comes next.
    await call(pipeline, "skill_update", id=taken["id"], name="given up")
    assert (await call(pipeline, "skill_create", **made))["name"] == "wanted"


@pytest.mark.anyio
async def test_a_kept_version_that_is_too_long_can_be_left_behind(tmp_path: Path) -> None:
    async with furnished(tmp_path, "sqlite") as house:
        pipeline = pipeline_of(house)
        made = await call(pipeline, "skill_create", **draft("c"))
        record = await house.store.get(SHARED, made["id"])
        assert record is not None
        long = replace(record, fields={**record.fields, "version": f"1.0.1{'0' * 60}"})
        await house.store.put([Entry(long)])
        with pytest.raises(BadLength):
            await call(pipeline, "skill_update", id=made["id"], content="new")
        updated = await call(pipeline, "skill_update", id=made["id"], content="new", version="2.0.0")
        assert updated["version"] == "2.0.0"


@pytest.mark.anyio
async def test_skills_are_everybodys_also_of_a_caller_with_one_project(tmp_path: Path) -> None:
    async with furnished(tmp_path, "sqlite") as house:
        pipeline = pipeline_of(house)
        made = await call(pipeline, "skill_create", **draft("c"))
        guest = Caller(Principal("ci", frozenset({"0" * 12})))
        assert (await pipeline.call("skill_list", {}, guest)).data["total"] == 1
        assert (await pipeline.call("skill_apply", {"id": made["id"]}, guest)).data["usage_count"] == 1


@pytest.mark.anyio
async def test_making_skills_has_a_rate_of_its_own(tmp_path: Path) -> None:
    async with furnished(tmp_path, "sqlite", rate_limit=RateLimit(on=True)) as house:
        pipeline = pipeline_of(house)
        with pytest.raises(RateLimited, match="rate limit exceeded for tool: skill_create"):
            for _ in range(40):
                await call(pipeline, "skill_create", **draft("c"))
        assert (await call(pipeline, "skill_list"))["total"] >= 10
