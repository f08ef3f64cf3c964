"""The HTTP face for automations, the older paths, and the daemon's own pages."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from jsonschema import Draft202012Validator
from prometheus_client.parser import text_string_to_metric_families

from contextd.plugins import load_extensions
from running import JSON_AND_SSE, Daemon

TOOLS = {tool.name: tool for tool in load_extensions().tools}
LISTED = {name for name, tool in TOOLS.items() if not tool.lean_only}


def test_an_answer_is_the_envelope(daemon: Daemon) -> None:
    answer = daemon.tool("status")
    assert answer.status_code == 200
    assert set(answer.json()) == {"data", "refs", "tokens_used", "has_more", "truncated"}
    assert answer.json()["data"]["status"] == "healthy"
    assert answer.json()["tokens_used"] > 0


@pytest.mark.parametrize("name", TOOLS)
def test_every_example_of_every_tool_works_and_fits_its_schema(
    daemon: Daemon, name: str, tmp_path: Path
) -> None:
    schema = Draft202012Validator(dict(TOOLS[name].output_schema))
    for example in TOOLS[name].examples:
        Draft202012Validator(dict(TOOLS[name].input_schema)).validate(dict(example.arguments))
        arguments = dict(example.arguments)
        if TOOLS[name].toolset == "code":
            # Code is read from the disk, so that the project of the examples must be there.
            arguments["path"] = indexed_project(daemon, tmp_path)
        if TOOLS[name].toolset == "safe":
            arguments = shop(tmp_path, arguments)
        answer = daemon.tool(name, **arguments)
        assert answer.status_code == 200, answer.text
        schema.validate(answer.json()["data"] | {"tokens_used": 1})


def shop(folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """The project of the examples, put there, and the arguments with its folder."""
    (folder / "go.mod").write_text("module github.com/dev/shop\n")
    (folder / "README.md").write_text("# Shop\n\nRun the binary.\n")
    written = json.dumps(arguments).replace("/home/dev/shop", str(folder))
    moved: dict[str, Any] = json.loads(written)
    return moved


def indexed_project(daemon: Daemon, folder: Path) -> str:
    (folder / "cart.go").write_text(
        "package shop\n\ntype Cart struct{}\n\nfunc (c *Cart) Total() int { return 1 }\n"
    )
    assert daemon.tool("index_codebase", path=str(folder)).status_code == 200
    return str(folder)


def test_errors_are_the_body_with_its_status(daemon: Daemon) -> None:
    invalid = daemon.tool("checkpoint_save", project_path="/srv/a")
    assert invalid.status_code == 400
    assert invalid.json() == {
        "category": "validation",
        "code": "VAL_001",
        "message": "[validation] summary is required: give 1 to 500 characters",
        "details": {"field": "summary", "error": "summary is required"},
    }
    assert daemon.tool("no_such").status_code == 404
    assert daemon.tool("checkpoint_restore", id="nope").status_code == 404
    url = f"{daemon.url}/api/v1/tools/status"
    assert httpx2.post(url, content=b"{").json()["details"]["field"] == "body"
    assert httpx2.post(url, content=b"[1]").json()["code"] == "VAL_002"
    assert httpx2.post(url, content=b" " * (4 * 2**20 + 1)).status_code == 413
    assert httpx2.post(url, content=b"").status_code == 200
    assert httpx2.get(url).status_code == 405


def test_the_openapi_description_is_whole(daemon: Daemon) -> None:
    document = httpx2.get(f"{daemon.url}/api/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {f"/api/v1/tools/{name}" for name in TOOLS}
    assert "$defs" not in str(document)
    for path in document["paths"].values():
        Draft202012Validator.check_schema(
            path["post"]["requestBody"]["content"]["application/json"]["schema"]
        )
        answer = path["post"]["responses"]["200"]["content"]["application/json"]["schema"]
        Draft202012Validator.check_schema(answer)
        assert {"data", "tokens_used", "refs"} <= answer["properties"].keys()


def test_the_reference_page_names_every_tool(daemon: Daemon) -> None:
    page = httpx2.get(f"{daemon.url}/api")
    assert page.headers["content-type"].startswith("text/html")
    assert all(f">{name} <" in page.text for name in TOOLS)
    assert "VAL_001" in page.text


def test_tools_are_listed_for_automations(daemon: Daemon) -> None:
    listed = httpx2.get(f"{daemon.url}/api/v1/tools").json()["tools"]
    assert {tool["name"] for tool in listed} == LISTED
    assert all(tool["annotations"] and tool["outputSchema"] for tool in listed)


def test_the_older_paths_answer_through_the_same_registry(daemon: Daemon) -> None:
    def post(path: str, body: object) -> httpx2.Response:
        return httpx2.post(f"{daemon.url}/mcp/{path}", json=body)

    saved = post(
        "checkpoint/save", {"content": "Old client\nmore", "project_path": "/srv/old", "metadata": {}}
    )
    assert saved.status_code == 200
    assert saved.json()["jsonrpc"] == "2.0"
    assert saved.json()["result"]["summary"] == "Old client"
    wrapped = {"jsonrpc": "2.0", "id": 7, "params": {"query": "old client", "project_path": "/srv/old"}}
    found = post("checkpoint/search", wrapped).json()
    assert found["id"] == 7
    assert found["result"]["results"][0]["summary"] == "Old client"
    assert post("checkpoint/list", {}).json()["result"]["total"] >= 1
    assert post("status", {}).json()["result"]["status"] == "healthy"
    assert post("collection/create", {"project_path": "/srv/old2"}).json()["result"]["created"] is True
    assert post("collection/list", {}).json()["result"]["total"] >= 2
    assert post("collection/delete", {"project_path": "/srv/old2"}).status_code == 200
    refused = post("checkpoint/save", {"project_path": "/srv/old"})
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == -32602
    assert post("no/such", {}).status_code == 404


def test_the_older_lists_and_reads_answer_too(daemon: Daemon) -> None:
    listed = httpx2.get(f"{daemon.url}/mcp/tools/list").json()["tools"]
    assert {tool["name"] for tool in listed} == LISTED
    resources = httpx2.get(f"{daemon.url}/mcp/resources/list").json()["resources"]
    assert "contextd://tools/status" in {resource["uri"] for resource in resources}
    read = f"{daemon.url}/mcp/resources/read"
    assert "name: status" in httpx2.post(read, json={"uri": "contextd://tools/status"}).text
    assert httpx2.post(read, json={"uri": "contextd://tools/nope"}).status_code == 404
    assert httpx2.post(read, json={}).status_code == 400
    assert httpx2.get(f"{daemon.url}/mcp/resources/list", params={"cursor": "x"}).status_code == 400


def test_the_older_stream_is_gone_and_says_where_to_go(daemon: Daemon) -> None:
    for path in ("/mcp/sse", "/mcp/sse/operation-1"):
        answer = httpx2.get(daemon.url + path)
        assert answer.status_code == 410
        assert "GET /mcp" in answer.json()["message"]


@pytest.mark.parametrize("path", ["/api/v1/tools/status", "/health", "/mcp/status"])
def test_a_wrong_method_is_told_with_those_that_are_right(daemon: Daemon, path: str) -> None:
    answer = httpx2.delete(daemon.url + path)
    assert answer.status_code == 405
    assert answer.json()["code"] == "VAL_012"
    assert "DELETE is not for this path" in answer.json()["message"]
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    "path", ["/.well-known/oauth-authorization-server", "/.well-known/x", "/nope", "/mcp/"]
)
def test_what_is_not_there_is_a_plain_404_and_not_a_page(daemon: Daemon, path: str) -> None:
    answer = httpx2.get(daemon.url + path, headers=JSON_AND_SSE)
    assert answer.status_code == 404
    assert answer.json()["category"] == "not_found"


def test_health_readiness_and_metrics(daemon: Daemon) -> None:
    assert httpx2.get(f"{daemon.url}/health").json() == {"status": "ok"}
    ready = httpx2.get(f"{daemon.url}/ready")
    assert ready.status_code == 200
    assert ready.json()["store"] == "ok"
    daemon.tool("status")
    text = httpx2.get(f"{daemon.url}/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    calls = {
        sample.labels["tool"]: sample.value
        for sample in families["contextd_tool_calls"].samples
        if sample.labels.get("outcome") == "ok"
    }
    assert calls["status"] >= 1
    assert "contextd_store_operation_duration_seconds" in families


def test_every_answer_names_its_request(daemon: Daemon) -> None:
    ids = {daemon.tool("status").headers["x-request-id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch("[0-9a-f]{16}", id) for id in ids)
