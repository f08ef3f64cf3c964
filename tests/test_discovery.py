"""Few tools listed, the rest found: profiles and their price, find_tools, call_tool, TOOL.md."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from pydantic import Field

from contextd import __version__
from contextd.adapters.tokens import O200kCounter
from contextd.domain.callers import Caller, Tally
from contextd.domain.errors import EmbedderUnavailable, NotAChoice, OutOfRange, UnknownTool
from contextd.domain.records import Purpose, Vector
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.reference import listing_costs
from contextd.edge.tool_md import tool_md
from contextd.plugins import load_extensions
from contextd.services.embedding import Embeddings
from contextd.services.front_matter import read, typed
from contextd.services.tool_finding import ToolFinding
from contextd.tools.declaration import AnyTool, Input, Output, tool
from contextd.tools.discovery import findable
from contextd.tools.registry import Registry
from contextd.wiring import House
from running import command, environment, running_daemon, structured

HERE = Caller(session="tests")
TOOLS = tuple(load_extensions().tools)
TOKENS = O200kCounter()
MOST_LEAN_TOKENS = 1_200
MOST_TOOL_MD_TOKENS = 100
CORE = {
    "find_tools",
    "call_tool",
    "checkpoint_save",
    "checkpoint_search",
    "checkpoint_restore",
    "memory_search",
    "memory_store",
    "remediation_search",
    "search_code",
    "branch",
    "return",
    "ref_get",
}

REQUESTS = [
    ("resume where I left off", "checkpoint_restore checkpoint_search checkpoint_list"),
    ("what was I working on yesterday", "checkpoint_list checkpoint_search checkpoint_restore"),
    ("save my progress before I try something risky", "checkpoint_save"),
    ("write down the current state so another session can continue", "checkpoint_save"),
    ("show the most recent checkpoints", "checkpoint_list"),
    ("bring back the saved context", "checkpoint_restore"),
    ("who calls this function", "symbol_lookup"),
    ("where is this class defined", "symbol_lookup"),
    ("find all references to a method before renaming it", "symbol_lookup"),
    ("this error again", "remediation_search"),
    ("has anybody fixed this exception before", "remediation_search"),
    ("remember how I fixed this bug", "remediation_save"),
    ("record the solution to this error", "remediation_save"),
    ("why does my build crash", "troubleshoot"),
    ("diagnose this stack trace step by step", "troubleshoot"),
    ("which kinds of errors are known", "list_patterns"),
    ("browse common failure patterns of high severity", "list_patterns"),
    ("run a subtask in isolation", "branch"),
    ("explore without filling my context window", "branch"),
    ("finish the subtask and hand back a summary", "return"),
    ("how many tokens has the branch left", "branch_status"),
    ("the answer was cut off, show the rest", "ref_get"),
    ("read more lines of a truncated result", "ref_get"),
    ("find the code that parses command line arguments", "search_code"),
    ("grep the repository for authentication logic", "search_code"),
    ("index this project so it can be searched", "index_codebase"),
    ("update the code index after git pull", "index_codebase"),
    ("make the markdown docs searchable", "index_repository"),
    ("is this project indexed yet", "get_status"),
    ("is the index out of date", "get_status"),
    ("remember this decision for next time", "memory_store"),
    ("note a lesson learned", "memory_store"),
    ("what do we know about deployments in this project", "memory_search"),
    ("what went wrong last time we migrated the database", "memory_search"),
    ("read the whole memory", "memory_get"),
    ("that advice was wrong", "memory_feedback"),
    ("this memory helped", "memory_feedback"),
    ("clean up duplicate memories", "memory_consolidate"),
    ("merge similar lessons", "memory_consolidate"),
    ("is there a procedure for releasing", "skill_search"),
    ("how do we usually debug race conditions, step by step", "skill_search"),
    ("follow a saved workflow", "skill_apply"),
    ("turn this workflow into something reusable", "skill_create"),
    ("change the steps of a skill", "skill_update"),
    ("remove an obsolete skill", "skill_delete"),
    ("which skills are used most", "skill_list"),
    ("delete all data of this project", "collection_delete"),
    ("forget everything about this repository", "collection_delete"),
    ("which projects have data", "collection_list"),
    ("how much disk space does each project take", "collection_list"),
    ("prepare storage for a new project", "collection_create"),
    ("is the server healthy", "status"),
    ("which version is running", "status"),
    ("how many tokens did we save this week", "analytics_get"),
    ("usage statistics and latency", "analytics_get"),
    ("continue the refactoring from last week", "checkpoint_search checkpoint_list checkpoint_restore"),
    ("I have to stop now, keep my place", "checkpoint_save"),
    ("load the checkpoint in full", "checkpoint_restore"),
    ("list old work sessions of this repo", "checkpoint_list checkpoint_search"),
    ("what functions does this one depend on", "symbol_lookup"),
    ("jump to the declaration of a struct", "symbol_lookup"),
    ("TypeError: cannot read properties of undefined", "remediation_search troubleshoot"),
    ("npm install fails with EACCES", "remediation_search troubleshoot"),
    ("store the workaround for this failure", "remediation_save"),
    ("analyse the root cause of a panic", "troubleshoot"),
    ("catalogue of typical errors", "list_patterns"),
    ("delegate research to a separate context", "branch"),
    ("end this branch", "return"),
    ("is the subtask still running", "branch_status"),
    ("get the remaining part of the output", "ref_get"),
    ("look up by handle", "ref_get"),
    ("semantic search over source files", "search_code"),
    ("where do we validate passwords", "search_code"),
    ("build a search index of my code", "index_codebase"),
    ("index text files matching a glob", "index_repository"),
    ("when was the code last indexed", "get_status"),
    ("keep this convention in mind", "memory_store"),
    ("save a fact about the project", "memory_store"),
    ("lessons about caching", "memory_search"),
    ("recall earlier decisions on the API design", "memory_search"),
    ("details and sources of one memory", "memory_get"),
    ("rate a memory", "memory_feedback"),
    ("too many near identical notes", "memory_consolidate"),
    ("find a playbook for incident response", "skill_search"),
    ("load the instructions of a skill", "skill_apply"),
    ("publish a how-to guide for the team", "skill_create"),
    ("fix a typo in a skill", "skill_update"),
    ("get rid of a skill", "skill_delete"),
    ("show me every skill", "skill_list"),
    ("erase a project's records", "collection_delete"),
    ("what is stored on this machine", "collection_list"),
    ("create a collection", "collection_create"),
    ("ping the daemon", "status"),
    ("which components are degraded", "status"),
    ("report on calls and success rates", "analytics_get"),
    ("how much money was saved", "analytics_get"),
]
"""What somebody says, and the tools that would do. None of these stands in a declaration."""


# --- profiles -------------------------------------------------------------------------


def registry(*toolsets: str) -> Registry:
    return Registry(TOOLS, toolsets or ("all",))


def names(listed: Registry) -> set[str]:
    return {listing["name"] for listing in listed.listings}


def test_the_lean_profile_has_its_few_tools_within_its_tokens() -> None:
    lean = registry("lean")
    assert names(lean) == CORE
    assert TOKENS.count(lean.listing()) <= MOST_LEAN_TOKENS
    assert json.loads(lean.listing()) == list(lean.listings)


def test_what_is_lean_is_still_a_valid_listing() -> None:
    for listing in registry("lean", "all").listings:
        types.Tool.model_validate(listing)
        Draft202012Validator.check_schema(listing["inputSchema"])
        assert "outputSchema" not in listing
        assert set(keywords(listing["inputSchema"])) <= {
            "type",
            "properties",
            "required",
            "enum",
            "items",
            "description",
        }


def keywords(schema: dict[str, Any]) -> Iterator[str]:
    yield from schema
    for part in schema.get("properties", {}).values():
        yield from keywords(part)
    if "items" in schema:
        yield from keywords(schema["items"])


def test_a_tool_of_the_lean_profile_shows_every_field_that_it_needs() -> None:
    for each in TOOLS:
        required = set(each.input_schema.get("required", ()))
        fields = {*each.input.model_fields, *each.terms}
        assert not each.lean or required <= set(each.lean) <= fields, each.name


def test_only_what_reads_says_so_in_the_lean_profile() -> None:
    hints = {listing["name"]: listing.get("annotations") for listing in registry("lean").listings}
    assert hints["memory_search"] == {"readOnlyHint": True}
    assert hints["memory_store"] is None
    assert hints["call_tool"] is None


def test_a_meaning_that_repeats_is_told_once() -> None:
    told = [
        (name, part["description"])
        for listing in registry("lean").listings
        for name, part in listing["inputSchema"]["properties"].items()
        if "description" in part
    ]
    assert len(told) == len(set(told))
    assert ("project_path", "Absolute path of the project") in told


def test_lean_goes_with_toolsets_and_keeps_its_form() -> None:
    both = registry("lean", "code")
    assert names(both) == CORE | {each.name for each in TOOLS if each.toolset == "code"}
    assert all("outputSchema" not in listing for listing in both.listings)
    shown = {listing["name"]: listing["inputSchema"]["properties"] for listing in both.listings}
    assert "relation" in shown["symbol_lookup"]
    assert "filters" not in shown["search_code"]


def test_call_tool_is_listed_where_others_are_not() -> None:
    assert names(registry()) == {each.name for each in TOOLS} - {"call_tool"}
    assert "call_tool" not in names(registry("system"))
    assert "find_tools" in names(registry("system"))


def test_the_price_of_each_choice_is_that_of_its_listing() -> None:
    costs = {cost.toolset: cost for cost in listing_costs(TOOLS)}
    assert set(costs) == {"all", "lean"} | {each.toolset for each in TOOLS}
    for toolset, cost in costs.items():
        assert cost.tokens == TOKENS.count(registry(toolset).listing())
        assert cost.tools == len(registry(toolset).listed)
    assert costs["lean"].tokens < min(cost.tokens for cost in costs.values() if cost.toolset != "lean")


def test_the_command_line_prints_the_price(tmp_path: Path) -> None:
    ran = subprocess.run(
        command("tools", "--tokens", "--toolsets", "lean"),
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    costs, listed = ran.stdout.split("\n\n")
    rows = [line.split() for line in costs.splitlines()[1:]]
    assert {toolset for _, _, toolset in rows} >= {"all", "lean", "code"}
    (lean,) = (tokens for tokens, _, toolset in rows if toolset == "lean")
    *tools, total = [line.split(maxsplit=1) for line in listed.splitlines()[1:]]
    assert {name for _, name in tools} == CORE
    assert total == [lean, "in all"]


# --- schemas --------------------------------------------------------------------------


class Leaf(Input):
    """Whose words are for who reads the code."""

    depth: int = Field(0, ge=0)
    inner: "Leaf | None" = None


class Tree(Input):
    one: Leaf
    other: Leaf | None = Field(None, description="Another")
    either: int | str | None = None


class Node(Output):
    value: float | None
    inner: "Node | None" = None


class Grown(Output):
    nodes: list[Node]


class Room:
    pass


@tool(toolset="system")
async def grow(room: Room, ask: Tree, caller: Caller) -> Grown:
    """Grow."""
    return Grown(nodes=[Node(value=None)])


@pytest.mark.anyio
async def test_a_model_within_itself_is_listed_too() -> None:
    schema = grow.listing["inputSchema"]
    Draft202012Validator(schema).validate({"one": {"depth": 1, "inner": {"inner": {}}}, "either": "x"})
    assert not Draft202012Validator(schema).is_valid({"one": {"depth": -1}})
    assert "Whose words" not in json.dumps(schema)
    answer = await grow.run(Room(), Tree.model_validate({"one": {}}), HERE)
    Draft202012Validator(grow.listing["outputSchema"]).validate(answer.model_dump())
    lean = grow.compact_schema
    assert lean["properties"]["other"]["description"] == "Another"
    assert lean["properties"]["one"]["properties"]["inner"] == {"type": "object"}
    assert lean["properties"]["either"] == {
        "anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]
    }
    assert grow.lean_listing["inputSchema"] == lean


@pytest.mark.parametrize("each", TOOLS, ids=lambda each: each.name)
def test_a_listing_takes_and_answers_what_the_tool_does(each: AnyTool) -> None:
    taken = Draft202012Validator(each.listing["inputSchema"])
    for example in each.examples:
        taken.validate(dict(example.arguments))
    assert set(each.listing["inputSchema"]["properties"]) == set(each.input_schema["properties"])
    assert set(each.listing["outputSchema"]["properties"]) == set(each.output_schema["properties"])


@pytest.mark.anyio
@pytest.mark.parametrize("detail", ["refs", "preview", "full"])
async def test_answers_of_any_detail_are_valid_by_the_listed_schema(
    pipeline: CallPipeline, tmp_path: Path, detail: str
) -> None:
    here = str(tmp_path)
    (tmp_path / "cart.py").write_text("class Cart:\n    def total(self):\n        return 1\n")
    saved = {
        "memory_store": {
            "title": "The cart",
            "content": "The total of a cart is added up on each read, since prices change.",
            "project_path": here,
        },
        "remediation_save": {"error_message": "cart is empty", "error_type": "E", "solution": "Fill it."},
        "skill_create": {
            "name": "Mend a cart",
            "description": "When a cart is broken",
            "content": "1. Look.",
            "version": "1.0.0",
            "author": "me",
            "category": "carts",
        },
        "index_codebase": {"path": here},
    }
    for name, arguments in saved.items():
        await pipeline.call(name, arguments, HERE)
    asked = {
        "memory_search": {"query": "cart", "project_path": here},
        "remediation_search": {"error_message": "cart is empty"},
        "skill_search": {"query": "a broken cart"},
        "search_code": {"query": "cart total", "path": here},
    }
    for name, arguments in asked.items():
        answer = await pipeline.call(name, {**arguments, "detail": detail}, HERE)
        assert answer.data["results"]
        schema = pipeline.registry[name].listing["outputSchema"]
        Draft202012Validator(schema).validate({**answer.data, **answer.envelope()})


# --- find_tools -----------------------------------------------------------------------


@pytest.fixture
def finding(house: House) -> ToolFinding:
    return ToolFinding(lambda: findable(TOOLS), house.embeddings)


async def found(finding: ToolFinding, query: str, limit: int = 3) -> list[str]:
    return [each.name for each in await finding.find(query, limit, Tally())]


@pytest.mark.anyio
async def test_nine_of_ten_requests_find_their_tool_among_the_first_three(finding: ToolFinding) -> None:
    missed = [
        (asked, first)
        for asked, wanted in REQUESTS
        if not set(first := await found(finding, asked)) & set(wanted.split())
    ]
    assert len(missed) <= len(REQUESTS) * 0.1, missed


@pytest.mark.anyio
async def test_a_tool_is_found_by_its_name(finding: ToolFinding) -> None:
    for each in findable(TOOLS):
        assert (await found(finding, each.name))[0] == each.name
    assert (await found(finding, "how does skill_update work"))[0] == "skill_update"


@pytest.mark.anyio
async def test_a_tool_is_told_with_what_it_takes(pipeline: CallPipeline) -> None:
    answer = await pipeline.call("find_tools", {"query": "who calls this function"}, HERE)
    tools = answer.data["tools"]
    assert len(tools) == 3
    lookup = next(each for each in tools if each["name"] == "symbol_lookup")
    assert lookup["description"] == pipeline.registry["symbol_lookup"].description
    assert lookup["input_schema"]["required"] == ["path", "symbol"]
    assert lookup["input_schema"]["properties"]["relation"]["enum"][0] == "all"
    assert "branch_id" not in lookup["input_schema"]["properties"]
    with pytest.raises(OutOfRange):
        await pipeline.call("find_tools", {"query": "x", "limit": 11}, HERE)


@pytest.mark.anyio
async def test_what_finds_tools_is_not_what_is_found(finding: ToolFinding) -> None:
    everything = await found(finding, "find a tool and call it", len(TOOLS))
    assert set(everything) == {each.name for each in TOOLS} - {"find_tools", "call_tool"}


@pytest.mark.anyio
async def test_a_plugins_tool_is_found_by_its_description(house: House) -> None:
    @tool(toolset="system", not_for="nothing at all: no_such_tool")
    async def fold_paper(room: Room, ask: Tree, caller: Caller) -> Grown:
        """Fold a paper crane."""
        raise NotImplementedError

    finding = ToolFinding(lambda: findable((*TOOLS, fold_paper)), house.embeddings)
    assert (await found(finding, "make an origami bird"))[0] == "fold_paper"


@dataclass
class Endpoint:
    """An embedder whose model can go away and change. A text's vector tells how many words it has."""

    model: str = "one"
    dimension: int = 2
    away: bool = False
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
        if self.away:
            raise EmbedderUnavailable("nobody answers")
        self.asked.append((purpose, len(texts)))
        return [Vector(b"\0\0\x80\x3f" * self.dimension) for _ in texts]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def close(self) -> None:
        return None


def by_endpoint(house: House, endpoint: Endpoint) -> ToolFinding:
    embeddings = Embeddings({"text": endpoint}, house.telemetry, house.clock)
    return ToolFinding(lambda: findable(TOOLS), embeddings)


@pytest.mark.anyio
async def test_the_tools_are_read_once(house: House) -> None:
    endpoint = Endpoint()
    finding = by_endpoint(house, endpoint)
    await found(finding, "one")
    await found(finding, "two")
    assert endpoint.asked == [("query", 1), ("document", len(findable(TOOLS))), ("query", 1)]


@pytest.mark.anyio
async def test_without_a_model_words_find_them(house: House) -> None:
    endpoint = Endpoint(away=True)
    finding = by_endpoint(house, endpoint)
    assert (await found(finding, "delete a skill"))[0] == "skill_delete"
    assert len(await found(finding, "…")) == 3
    endpoint.away = False
    assert (await found(finding, "delete a skill"))[0] == "skill_delete"


@pytest.mark.anyio
async def test_a_model_that_goes_away_amid_the_reading_is_no_fault(house: House) -> None:
    @dataclass
    class Leaving(Endpoint):
        async def embed(self, texts: Sequence[str], purpose: Purpose) -> list[Vector]:
            vectors = await super().embed(texts, purpose)
            self.away = purpose == "query"
            return vectors

    finding = by_endpoint(house, Leaving())
    assert (await found(finding, "delete a skill"))[0] == "skill_delete"


@pytest.mark.anyio
async def test_vectors_of_another_model_are_not_compared(house: House) -> None:
    endpoint = Endpoint()
    finding = by_endpoint(house, endpoint)
    await found(finding, "one")
    endpoint.model, endpoint.dimension = "two", 3
    assert (await found(finding, "delete a skill"))[0] == "skill_delete"
    await found(finding, "three")
    assert endpoint.asked[-1] == ("document", len(findable(TOOLS)))


@pytest.mark.anyio
async def test_there_may_be_no_tools_at_all(house: House) -> None:
    assert await found(ToolFinding(lambda: [], house.embeddings), "anything") == []


# --- call_tool ------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_tool_that_is_not_listed_answers_by_name_and_by_call_tool(pipeline: CallPipeline) -> None:
    by_name = await pipeline.call("collection_list", {}, HERE)
    through = await pipeline.call("call_tool", {"name": "collection_list"}, HERE)
    assert through.data == by_name.data
    with pytest.raises(OutOfRange):
        await pipeline.call("call_tool", {"name": "skill_list", "arguments": {"limit": 0}}, HERE)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["call_tool", "no_such_tool"])
async def test_call_tool_calls_neither_itself_nor_what_is_not_there(
    pipeline: CallPipeline, name: str
) -> None:
    with pytest.raises(NotAChoice, match="find_tools finds a tool by what you want to do"):
        await pipeline.call("call_tool", {"name": name, "arguments": {"name": "status"}}, HERE)


@pytest.mark.anyio
async def test_only_the_road_knows_what_call_tool_calls(house: House) -> None:
    own = house.registry["call_tool"]
    with pytest.raises(UnknownTool):
        await own.run(house.services[own.service], own.input(name="status"), HERE)


@pytest.mark.anyio
async def test_a_misspelt_tool_is_answered_with_the_one_that_was_meant(pipeline: CallPipeline) -> None:
    with pytest.raises(NotAChoice, match=r"did you mean checkpoint_list\?"):
        await pipeline.call("call_tool", {"name": "checkpoints_list", "arguments": {}}, HERE)


def test_a_lean_daemon_lists_a_few_and_answers_all(tmp_path: Path) -> None:
    with running_daemon(tmp_path, "--toolsets", "lean") as daemon:
        session = daemon.session()
        listed = session.rpc("tools/list").json()["result"]["tools"]
        assert {each["name"] for each in listed} == CORE
        assert TOKENS.count(json.dumps(listed, separators=(",", ":"))) <= MOST_LEAN_TOKENS
        first, *_ = structured(session.call("find_tools", query="is the daemon healthy"))["tools"]
        assert first["name"] == "status"
        called = structured(session.call("call_tool", name=first["name"], arguments={}))
        assert called["status"] == structured(session.call("status"))["status"] == "healthy"


# --- TOOL.md --------------------------------------------------------------------------


@pytest.mark.parametrize("each", TOOLS, ids=lambda each: each.name)
def test_a_tools_own_page_is_short_and_says_what_it_is_for(each: AnyTool) -> None:
    head, body = read(tool_md(each))
    facts = typed(head)
    assert isinstance(facts, dict)
    assert (facts["name"], facts["version"]) == (each.name, __version__)
    apart = {"safe_bash": "sandbox", "safe_read": "project", "safe_write": "project"}
    assert facts["isolation"] == apart.get(each.name, "none")
    assert re.fullmatch("[0-9a-f]{12}", str(facts["schema"]))
    limits = facts["limits"]
    assert isinstance(limits, dict)
    assert set(limits) == {"timeout_s", "calls_per_second", "burst", "tokens"}
    assert limits["timeout_s"] == each.timeout_s
    assert TOKENS.count(body) <= MOST_TOOL_MD_TOKENS
    assert [line.partition(":")[0] for line in body.splitlines()] == ["Use", "Not", "Returns", "Limits"]


@pytest.mark.parametrize("each", TOOLS, ids=lambda each: each.name)
def test_what_a_tool_points_to_is_there(each: AnyTool) -> None:
    known = {other.name for other in TOOLS}
    pointed = re.findall(r"\b[a-z]+_[a-z]+\b", each.not_for)
    assert set(pointed) <= known | {"branch_id", "token_budget"}
    assert each.name not in pointed


def test_the_hash_changes_with_what_a_tool_answers() -> None:
    status = registry()["status"]
    other = replace(status, output=Grown)
    assert tool_md(status) != tool_md(other)
    assert tool_md(status) == tool_md(replace(status, examples=()))


def test_a_plugins_tool_has_its_page_too() -> None:
    class Silent(Output):
        pass

    growing: AnyTool = grow
    _, body = read(tool_md(replace(growing, output=Silent, budget=lambda ask: 7)))
    assert body.splitlines() == [
        "Use: Grow.",
        "Returns: nothing",
        "Limits: 30 s; 10 calls/s; tokens by what is asked",
    ]
