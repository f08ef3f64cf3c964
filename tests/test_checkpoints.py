"""Checkpoints end to end, over MCP: saved, found, listed, restored, kept apart."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from running import Daemon, Session, running_daemon, structured

_projects = itertools.count()


@pytest.fixture
def session(daemon: Daemon) -> Session:
    return daemon.session()


@pytest.fixture
def project() -> str:
    return f"/srv/project-{next(_projects)}"


def save(session: Session, project: str, summary: str, **more: Any) -> dict[str, Any]:
    return structured(session.call("checkpoint_save", summary=summary, project_path=project, **more))


def found(session: Session, query: str, **more: Any) -> list[str]:
    answer = structured(session.call("checkpoint_search", query=query, **more))
    return [hit["summary"] for hit in answer["results"]]


def test_a_checkpoint_is_found_by_meaning_and_restored(session: Session, project: str) -> None:
    saved = save(
        session,
        project,
        "Sign-in works with JSON web tokens",
        description="Chose a cookie over local storage. Next: rotate the key.",
        context={"branch": "feat/login", "attempts": 3},
        tags=["auth", "backend"],
        state={"cursor": {"file": "auth.py", "line": 12}},
    )
    save(session, project, "Database migrations run in CI")
    save(session, project, "Styled the landing page")
    assert saved["id"].startswith("cp-")
    assert saved["token_count"] > 10
    assert (
        found(session, "how do users authenticate", project_path=project)[0]
        == "Sign-in works with JSON web tokens"
    )
    restored = structured(session.call("checkpoint_restore", id=saved["id"]))
    assert restored["level"] == "context"
    assert restored["context"] == {"branch": "feat/login", "attempts": 3}
    assert restored["tags"] == ["auth", "backend"]
    assert "state" not in restored
    assert restored["essentials"]["files"] == ["auth.py"]
    assert restored["fidelity"] == saved["fidelity"] == 1.0


def test_levels_give_as_much_as_they_say(session: Session, project: str) -> None:
    saved = save(session, project, "s", description="d", content="c", state={"k": 1})
    levels = {
        level: structured(session.call("checkpoint_restore", id=saved["id"], level=level))
        for level in ("summary", "context", "full")
    }
    assert {level: answer["level"] for level, answer in levels.items()} == {
        level: level for level in levels
    }
    assert [answer.get("description") for answer in levels.values()] == [None, "d", "d"]
    assert [answer.get("content") for answer in levels.values()] == [None, None, "c"]
    assert [answer.get("state") for answer in levels.values()] == [None, None, {"k": 1}]
    assert all(value is not None for name, value in levels["summary"].items() if name != "fidelity")


def test_an_identifier_is_found_whole_and_by_its_parts(session: Session, project: str) -> None:
    save(session, project, "Renamed parseHTTPRequest to read_http_request")
    save(session, project, "Something else altogether")
    for query in ("parseHTTPRequest", "http request", "read_http_request"):
        assert found(session, query, project_path=project)[0].startswith("Renamed")


def test_results_have_the_seeds_fields_and_scores_that_fall(session: Session, project: str) -> None:
    for number in range(8):
        save(session, project, f"Worked on module {number}", description="caching and retries")
    answer = structured(
        session.call("checkpoint_search", query="cache retries", project_path=project, top_k=5)
    )
    assert answer["query"] == "cache retries"
    assert answer["top_k"] == 5
    assert len(answer["results"]) == 5
    scores = [hit["score"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= hit["score"] <= 1 and 0 <= hit["distance"] <= 2 for hit in answer["results"])
    assert all(hit["source"] == "checkpoints" for hit in answer["results"])


def test_detail_shortens_what_is_long_and_refs_only_name_it(session: Session, project: str) -> None:
    save(session, project, "long", description="word " * 300, context={"k": "v"})
    tools = {"checkpoint_search": {"query": "long"}, "checkpoint_list": {}}
    for tool, arguments in tools.items():
        by_detail = {
            detail: structured(session.call(tool, project_path=project, detail=detail, **arguments))
            for detail in ("refs", "preview", "full")
        }
        items = [
            next(iter(answer.get("results") or answer["checkpoints"])) for answer in by_detail.values()
        ]
        refs, preview, full = items
        assert set(refs) == {"id", "summary", "created_at"} | (set(full) & {"score", "source"})
        assert set(preview) == set(full) > set(refs)
        assert (len(preview["description"]), len(full["description"])) == (200, 1500)
        assert (preview["context"], full["context"]) == ({}, {"k": "v"})


def test_tags_narrow_a_search_and_all_must_be_there(session: Session, project: str) -> None:
    save(session, project, "both", tags=["go", "db"])
    save(session, project, "one", tags=["go"])
    assert set(found(session, "both one", project_path=project, tags=["go"])) == {"both", "one"}
    assert found(session, "both one", project_path=project, tags=["go", "db"]) == ["both"]
    assert found(session, "both one", project_path=project, tags=["rust"]) == []


def test_one_project_never_sees_another(session: Session, project: str) -> None:
    other = f"{project}-other"
    save(session, project, "zebra in mine")
    save(session, other, "zebra in the other")
    assert found(session, "zebra", project_path=project) == ["zebra in mine"]
    assert set(found(session, "zebra")[:2]) == {"zebra in mine", "zebra in the other"}
    listed = structured(session.call("checkpoint_list", project_path=other))
    assert [checkpoint["summary"] for checkpoint in listed["checkpoints"]] == ["zebra in the other"]


def test_a_project_with_nothing_in_it_gives_empty_results(session: Session, project: str) -> None:
    assert found(session, "anything", project_path=project) == []
    assert structured(session.call("checkpoint_list", project_path=project))["total"] == 0
    answer = structured(session.call("collection_list"))
    assert project not in [collection["project_path"] for collection in answer["collections"]]


def test_lists_go_newest_first_and_page_by_page(session: Session, project: str) -> None:
    for number in range(7):
        save(session, project, f"step {number}")
    pages = [
        structured(session.call("checkpoint_list", project_path=project, limit=3, offset=offset))
        for offset in (0, 3, 6, 9)
    ]
    summaries = [[checkpoint["summary"] for checkpoint in page["checkpoints"]] for page in pages]
    assert summaries == [["step 6", "step 5", "step 4"], ["step 3", "step 2", "step 1"], ["step 0"], []]
    assert {page["total"] for page in pages} == {7}


def test_a_list_over_all_projects_is_in_order_too(session: Session, project: str) -> None:
    for number in range(4):
        save(session, f"{project}-{number % 2}", f"{project} {number}")
    listed = structured(session.call("checkpoint_list", limit=4))
    assert [c["summary"] for c in listed["checkpoints"]] == [f"{project} {n}" for n in (3, 2, 1, 0)]


def test_an_unknown_checkpoint_is_an_error_that_says_what_to_do(session: Session) -> None:
    for id in ("cp-000000000000-00000000000000000", "nonsense", "cp-..-x", "a-b-c"):
        error = session.call("checkpoint_restore", id=id)["result"]
        assert error["isError"]
        assert error["structuredContent"]["code"] == "REC_001"
        assert error["structuredContent"]["category"] == "not_found"


def test_secrets_are_neither_kept_nor_answered(daemon: Daemon, session: Session, project: str) -> None:
    secret = "ghp_" + "a1B2" * 9
    saved = save(
        session, project, f"pushed with {secret}", context={"token": secret}, state={"deep": [secret]}
    )
    full = session.rpc(
        "tools/call", {"name": "checkpoint_restore", "arguments": {"id": saved["id"], "level": "full"}}
    )
    assert secret not in full.text
    assert "[REDACTED:github" in full.text
    files = [path for path in daemon.data_dir.rglob("*") if path.is_file()]
    assert files
    assert not any(secret.encode() in path.read_bytes() for path in files)


def test_the_first_line_of_content_is_the_summary_of_earlier_clients(
    session: Session, project: str
) -> None:
    answer = structured(
        session.call(
            "checkpoint_save",
            content="First line\nand more",
            project_path=project,
            metadata={"branch": "x"},
        )
    )
    assert answer["summary"] == "First line"
    restored = structured(session.call("checkpoint_restore", id=answer["id"], level="full"))
    assert restored["content"] == "First line\nand more"
    assert restored["context"] == {"branch": "x"}


def test_a_summary_that_is_there_is_kept_beside_content(session: Session, project: str) -> None:
    answer = structured(
        session.call("checkpoint_save", summary="mine", content="theirs", project_path=project)
    )
    assert answer["summary"] == "mine"


def test_a_checkpoint_is_there_next_week(tmp_path: Path) -> None:
    with running_daemon(tmp_path) as first:
        saved = first.tool("checkpoint_save", summary="before the restart", project_path="/srv/a").json()[
            "data"
        ]
    with running_daemon(tmp_path) as second:
        again = second.tool("checkpoint_restore", id=saved["id"]).json()["data"]
        assert again["summary"] == "before the restart"
        hits = second.tool("checkpoint_search", query="restart", project_path="/srv/a").json()["data"][
            "results"
        ]
        assert [hit["id"] for hit in hits] == [saved["id"]]


def test_resources_prompts_and_completion_know_the_checkpoints(session: Session, project: str) -> None:
    saved = save(session, project, "resumable", description="go on here", tags=["findme-tag"])
    uri = f"contextd://checkpoints/{saved['id']}"
    listed = session.rpc("resources/list").json()["result"]["resources"]
    assert uri in {resource["uri"] for resource in listed}
    (content,) = session.rpc("resources/read", {"uri": uri}).json()["result"]["contents"]
    assert "go on here" in content["text"]
    (tool,) = session.rpc("resources/read", {"uri": "contextd://tools/status"}).json()["result"]["contents"]
    assert "name: status" in tool["text"]
    prompt = session.rpc("prompts/get", {"name": "resume-work", "arguments": {"project_path": project}})
    assert "go on here" in prompt.json()["result"]["messages"][0]["content"]["text"]
    empty = session.rpc("prompts/get", {"name": "resume-work", "arguments": {"project_path": "/srv/none"}})
    assert "no checkpoint" in empty.json()["result"]["messages"][0]["content"]["text"]
    error = session.rpc("prompts/get", {"name": "diagnose-error", "arguments": {"error_message": "boom"}})
    assert "> boom" in error.json()["result"]["messages"][0]["content"]["text"]
    end = session.rpc("prompts/get", {"name": "end-of-session", "arguments": {"project_path": project}})
    assert "checkpoint_save" in end.json()["result"]["messages"][0]["content"]["text"]

    def completed(name: str, value: str) -> list[str]:
        ref = {"type": "ref/resource", "uri": "contextd://checkpoints/{id}"}
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        values: list[str] = session.rpc("completion/complete", params).json()["result"]["completion"][
            "values"
        ]
        return values

    assert completed("id", saved["id"][:20]) == [saved["id"]]
    assert completed("tag", "findme") == ["findme-tag"]
    assert completed("project_path", project) == [project]
    assert completed("name", "checkpoint_re") == ["checkpoint_restore"]
    assert completed("nothing", "") == []


@pytest.mark.parametrize(
    "uri", ["contextd://checkpoints/nope", "contextd://tools/nope", "contextd://x", "file:///etc"]
)
def test_a_resource_that_is_not_there_is_told_so(session: Session, uri: str) -> None:
    error = session.rpc("resources/read", {"uri": uri}).json()["error"]
    assert error["code"] == -32002
    assert error["message"].startswith("[not_found]")


def test_prompts_and_cursors_are_validated(session: Session) -> None:
    unknown = session.rpc("prompts/get", {"name": "nope", "arguments": {}}).json()["error"]
    assert unknown["code"] == -32602
    missing = session.rpc("prompts/get", {"name": "resume-work", "arguments": {}}).json()["error"]
    assert missing["message"].startswith("[validation] project_path is required")
    cursor = session.rpc("resources/list", {"cursor": "../x"}).json()["error"]
    assert cursor["code"] == -32602


def test_collections_are_made_listed_and_deleted(session: Session, project: str) -> None:
    made = structured(session.call("collection_create", project_path=project))
    assert made["created"] is True
    assert structured(session.call("collection_create", project_path=project))["created"] is False
    save(session, project, "in the drawer")
    listed = structured(session.call("collection_list"))["collections"]
    (mine,) = [collection for collection in listed if collection["project_path"] == project]
    assert mine["counts"] == {"checkpoint": 1}
    assert mine["size_bytes"] > 0
    gone = structured(session.call("collection_delete", project_path=project))
    assert "1 records" in gone["message"]
    assert structured(session.call("checkpoint_list", project_path=project))["total"] == 0
    assert found(session, "drawer", project_path=project) == []
    again = session.call("collection_delete", project_path=project)["result"]
    assert again["structuredContent"]["category"] == "not_found"
    save(session, project, "a new beginning")
    assert found(session, "beginning", project_path=project) == ["a new beginning"]
