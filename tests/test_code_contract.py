"""Every line of the code tools' contract: parameters, fields, error codes, and what may happen at once."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from code_projects import BROKEN, HERE, Desk, go_shop, grown, open_desk
from contextd.adapters.tokens import O200kCounter
from contextd.domain.answers import as_json
from contextd.domain.errors import BadText, Fault, Invalid
from contextd.edge.error_map import codes
from contextd.services.projects import project_at
from running import Daemon, Session, structured

INVALID, NO_PROJECT, RUNNING, NOT_INDEXED, EMPTY_QUERY, INTERNAL = (
    -32602,
    -32001,
    -32002,
    -32003,
    -32004,
    -32603,
)
OLD_WIRE = "2025-06-18"
TOOLS: dict[str, dict[str, Any]] = {
    "index_codebase": {},
    "search_code": {"query": "order"},
    "get_status": {},
}
FTS_SYNTAX = [
    '"',
    '""',
    '"unbalanced',
    'un"bal"an"ced',
    "AND",
    "OR",
    "NOT",
    "order AND",
    "AND OR NOT",
    "NEAR(",
    "NEAR(order, 5)",
    "*",
    "ord*",
    "names: order",
    "col:value",
    "body : order",
    "^order",
    "order + line",
    "{names body} : x",
    "-order",
    "(",
    ")",
    "((((",
    "'; DROP TABLE chunks; --",
    "' OR 1=1 --",
    "\\",
    "%",
    "_",
    "?1",
    ":name",
    "@x",
    "order\tline\nbreak",
    "🦆",
    "日本語の注文",
    "ﬁ ǅ İ ß",
    "\u202e\u200b",
    "...",
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture(scope="module")
def shop(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = grown(go_shop(tmp_path_factory.mktemp("shop")), {"internal/broken/parser.go": BROKEN})
    desk.index(root)
    return root


def code_of(fault: Fault) -> int:
    return codes(fault).jsonrpc


def check_invalid(fault: Fault, param: str) -> None:
    """-32602, with the parameter and the reason."""
    assert code_of(fault) == INVALID
    assert isinstance(fault, Invalid)
    assert fault.details["param"] == fault.details["field"] == param
    assert fault.details["reason"] == fault.details["error"]
    assert str(fault.details["reason"]).strip()


# --- path, in all of them ------------------------------------------------------------------------


@pytest.mark.parametrize("tool", TOOLS)
def test_path_is_required(desk: Desk, tool: str) -> None:
    check_invalid(desk.fault(tool, **TOOLS[tool]), "path")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize(
    "path",
    [
        "",
        "relative/path",
        "./here",
        "~/project",
        "/tmp/../etc",
        "/tmp/x/..",
        "//tmp",
        "/tmp//x",
        "/tmp/",
        "/tmp/\0x",
        "/" + "x" * 5_000,
        7,
        None,
        True,
        ["/tmp"],
        {"path": "/tmp"},
    ],
)
def test_a_path_that_is_none_is_refused(desk: Desk, tool: str, path: object) -> None:
    check_invalid(desk.fault(tool, path=path, **TOOLS[tool]), "path")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_path_must_be_of_a_folder_that_is_there(desk: Desk, tmp_path: Path, tool: str) -> None:
    grown(tmp_path, {"main.go": "package main\n"})
    for path in (tmp_path / "missing", tmp_path / "main.go", tmp_path / ("x" * 300)):
        check_invalid(desk.fault(tool, path=str(path), **TOOLS[tool]), "path")


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_parameter_is_named(desk: Desk, shop: Path, tool: str) -> None:
    check_invalid(desk.fault(tool, path=str(shop), colour="red", **TOOLS[tool]), "colour")


# --- index_codebase ------------------------------------------------------------------------------


def test_an_answer_of_index_codebase_has_every_field(desk: Desk, tmp_path: Path) -> None:
    grown(go_shop(tmp_path), {"internal/broken/parser.go": BROKEN})
    answer = desk.index(tmp_path)
    assert set(answer) == {"success", "project_id", "statistics", "errors", "message"}
    assert answer["success"] is True
    assert type(answer["project_id"]) is int
    figures = answer["statistics"]
    assert {
        "files_indexed",
        "files_skipped",
        "files_failed",
        "symbols_extracted",
        "chunks_created",
        "embeddings_generated",
        "duration_seconds",
        "index_size_mb",
    } <= set(figures)
    for name in (
        "files_indexed",
        "files_failed",
        "files_skipped",
        "symbols_extracted",
        "chunks_created",
    ):
        assert type(figures[name]) is int
        assert figures[name] > 0, name
    assert figures["embeddings_generated"] == figures["chunks_created"]
    assert figures["files_skipped"] == sum(figures["skipped"].values())
    assert 0 < figures["duration_seconds"] < 60
    assert figures["index_size_mb"] > 0
    assert {(type(each["file"]), type(each["error"])) for each in answer["errors"]} == {(str, str)}
    assert {each["file"] for each in answer["errors"]} == {"internal/broken/parser.go"}
    assert answer["message"].startswith(f"Successfully indexed {figures['files_indexed']} files in ")


def test_a_project_keeps_its_id(desk: Desk, shop: Path, tmp_path: Path) -> None:
    assert desk.index(shop)["project_id"] == desk.status(shop)["project"]["id"]
    other = grown(tmp_path, {"main.go": "package main\n"})
    assert desk.index(other)["project_id"] != desk.index(shop)["project_id"]


@pytest.mark.parametrize("name", ["force_reindex", "include_tests", "include_vendor"])
@pytest.mark.parametrize("value", ["yes", "true", 1, 0, None, [], {}, 0.5])
def test_a_switch_is_true_or_false(desk: Desk, shop: Path, name: str, value: Any) -> None:
    check_invalid(desk.fault("index_codebase", path=str(shop), **{name: value}), name)


def test_a_folder_without_source_is_no_project(desk: Desk, tmp_path: Path) -> None:
    assert code_of(desk.fault("index_codebase", path=str(tmp_path))) == NO_PROJECT
    grown(tmp_path, {"photo.png": b"\x89PNG\r\n\x1a\n\0", "deep/er/photo.jpg": b"\xff\xd8\xff"})
    assert code_of(desk.fault("index_codebase", path=str(tmp_path))) == NO_PROJECT
    grown(tmp_path, {"README.md": "# Nothing but words\n"})
    assert code_of(desk.fault("index_codebase", path=str(tmp_path))) == NO_PROJECT
    assert desk.status(tmp_path)["indexed"] is False


@pytest.mark.parametrize("file", ["go.mod", "main.go", "deep/er/x.go", "tool.py", "page.ts"])
def test_a_go_mod_or_a_source_file_makes_a_project(desk: Desk, tmp_path: Path, file: str) -> None:
    grown(tmp_path, {file: "module example.com/x\n" if file == "go.mod" else ""})
    assert desk.index(tmp_path)["success"] is True


def test_a_second_run_in_this_process_is_refused(
    desk: Desk, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = desk.house.code.store
    original = store.change

    async def both() -> Fault:
        is_inside, may_go_on = asyncio.Event(), asyncio.Event()

        async def wait(*arguments: Any) -> Any:
            is_inside.set()
            await may_go_on.wait()
            return await original(*arguments)

        with monkeypatch.context() as patched:
            patched.setattr(store, "change", wait)
            first = asyncio.create_task(desk.pipeline.call("index_codebase", {"path": str(shop)}, HERE))
            await is_inside.wait()
            with pytest.raises(Fault) as raised:
                await desk.pipeline.call("index_codebase", {"path": str(shop)}, HERE)
        may_go_on.set()
        assert (await first).data["success"] is True
        return raised.value

    assert code_of(desk.run(both())) == RUNNING


HOLD = """
import asyncio, sys
from pathlib import Path
from contextd.adapters.index_locks import FileIndexLocks

async def hold():
    async with FileIndexLocks(Path(sys.argv[1])).hold(sys.argv[2], background=False, patience_s=0.0):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(hold())
"""


@contextmanager
def run_elsewhere(data_dir: Path, root: Path) -> Iterator[None]:
    """Another process that indexes this project, and does not come to an end."""
    key = project_at(str(root)).key
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data_dir), key],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate(timeout=20)


def test_a_second_run_in_another_process_is_refused(desk: Desk, shop: Path) -> None:
    with run_elsewhere(desk.house.settings.data_dir, shop):
        assert code_of(desk.fault("index_codebase", path=str(shop))) == RUNNING
        assert desk.status(shop)["indexing"] is True
        assert desk.found(shop, "NewMoney"), "a search answers meanwhile"
    assert desk.status(shop)["indexing"] is False
    assert desk.index(shop)["success"] is True


def test_a_broken_database_is_an_internal_error(tmp_path: Path) -> None:
    shop = go_shop(tmp_path / "shop")
    with open_desk(tmp_path / "data") as desk:
        desk.index(shop)
    database = desk.database(shop)
    for file in database.parent.glob(f"{database.name}*"):
        file.write_bytes(b"this is no database, it is a poem " * 200)
    with open_desk(tmp_path / "data") as desk:
        for tool, more in TOOLS.items():
            assert code_of(desk.fault(tool, path=str(shop), **more)) == INTERNAL, tool


def test_a_store_that_refuses_a_write_is_an_internal_error_and_says_why(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextd.domain.errors import StoreUnavailable

    async def full(*arguments: Any) -> None:
        raise StoreUnavailable("the disk is full")

    root = grown(tmp_path, {f"f{n}.go": f"package full\n\nfunc Full{n}() {{}}\n" for n in range(60)})
    with monkeypatch.context() as patched:
        patched.setattr(desk.house.code.store, "stage", full)
        fault = desk.fault("index_codebase", path=str(root))
    assert isinstance(fault, StoreUnavailable)
    assert code_of(fault) == INTERNAL
    assert desk.index(root)["statistics"]["files_indexed"] == 60


# --- search_code: what is answered ----------------------------------------------------------------


def test_an_answer_of_search_code_has_every_field(desk: Desk, shop: Path) -> None:
    answer = desk.search(shop, "cancel an order before it is shipped")
    assert set(answer) == {"success", "query", "results", "statistics", "message"}
    assert answer["success"] is True
    assert answer["query"] == "cancel an order before it is shipped"
    figures = answer["statistics"]
    assert set(figures) == {"total_results", "returned_results", "search_duration_ms", "cache_hit"}
    assert figures["returned_results"] == len(answer["results"]) <= figures["total_results"]
    assert figures["search_duration_ms"] > 0
    assert answer["message"] == f"Found {figures['total_results']} results"
    best = answer["results"][0]
    assert {
        "chunk_id",
        "rank",
        "relevance_score",
        "symbol",
        "file",
        "content",
        "context_before",
        "context_after",
    } <= set(best)
    assert {"name", "kind", "package", "signature", "doc_comment"} <= set(best["symbol"])
    assert {"path", "package", "start_line", "end_line"} <= set(best["file"])
    assert type(best["chunk_id"]) is int
    assert best["symbol"] | {"ddd_patterns": []} == {
        "name": "Cancel",
        "kind": "method",
        "package": "internal/order",
        "signature": "func (o *Order) Cancel()",
        "doc_comment": "Cancel ends the order before it is shipped.",
        "container": "Order",
        "exported": True,
        "ddd_patterns": [],
    }
    assert best["file"]["path"] == "internal/order/order.go"
    assert best["file"]["package"] == "order"
    lines = (shop / "internal/order/order.go").read_text().split("\n")
    start, end = best["file"]["start_line"], best["file"]["end_line"]
    assert best["content"] == "\n".join(lines[start - 1 : end])
    assert best["context_before"] in "\n".join(lines[: start - 1])
    assert best["context_before"].endswith("}")
    assert best["context_after"].startswith("func (o *Order) recount()")


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
def test_results_are_ranked_by_a_relevance_between_nought_and_one(
    desk: Desk, shop: Path, mode: str
) -> None:
    for query in ("order", "Total", "how is an order paid", "func NewMoney"):
        found = desk.found(shop, query, limit=100, search_mode=mode)
        assert [hit["rank"] for hit in found] == list(range(1, len(found) + 1))
        scores = [hit["relevance_score"] for hit in found]
        assert scores == sorted(scores, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in scores)
        assert len({hit["chunk_id"] for hit in found}) == len(found)


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_the_definition_of_a_name_comes_first(desk: Desk, shop: Path, mode: str) -> None:
    for name in ("NewMoney", "CheckoutService", "ChangeQuantity", "SQLOrders", "func NewCheckoutService"):
        (best, *_) = desk.found(shop, name, search_mode=mode)
        assert best["symbol"]["name"] == name.removeprefix("func ")


def test_meaning_is_found_without_a_common_word(desk: Desk, shop: Path) -> None:
    found = desk.found(shop, "add two sums of cash together", search_mode="vector", limit=3)
    assert "internal/order/money.go" in {hit["file"]["path"] for hit in found}


def test_keyword_mode_finds_only_what_has_a_word(desk: Desk, shop: Path) -> None:
    found = desk.found(shop, "currency", search_mode="keyword", limit=100)
    assert found
    assert all("currency" in hit["content"].lower() for hit in found)
    assert desk.found(shop, "xylophone", search_mode="keyword") == []


# --- search_code: what may be asked ----------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_a_limit_is_kept(desk: Desk, shop: Path, limit: int) -> None:
    found = desk.search(shop, "order", limit=limit)
    assert len(found["results"]) == min(limit, found["statistics"]["returned_results"]) <= limit
    assert found["statistics"]["total_results"] >= len(found["results"])


def test_ten_results_by_default(desk: Desk, shop: Path) -> None:
    assert len(desk.found(shop, "order")) == 10


@pytest.mark.parametrize("limit", [0, -1, 101, 10**9, "10", 1.5, True, None, []])
def test_a_limit_out_of_range_is_refused(desk: Desk, shop: Path, limit: object) -> None:
    check_invalid(desk.fault("search_code", path=str(shop), query="order", limit=limit), "limit")


def test_a_query_is_required(desk: Desk, shop: Path) -> None:
    check_invalid(desk.fault("search_code", path=str(shop)), "query")


@pytest.mark.parametrize("query", ["", " ", "\t\n", "\u2003\u3000"])
def test_an_empty_query_has_a_code_of_its_own(desk: Desk, shop: Path, query: str) -> None:
    assert code_of(desk.fault("search_code", path=str(shop), query=query)) == EMPTY_QUERY


@pytest.mark.parametrize("query", ["x" * 1_001, 7, None, True, ["order"], {"q": "order"}, "nul\0"])
def test_a_query_that_is_none_is_refused(desk: Desk, shop: Path, query: object) -> None:
    check_invalid(desk.fault("search_code", path=str(shop), query=query), "query")


@pytest.mark.parametrize("query", ["x" * 1_000, "order " * 166, "é" * 1_000])
def test_a_query_may_have_a_thousand_characters(desk: Desk, shop: Path, query: str) -> None:
    assert desk.search(shop, query)["query"] == query


@pytest.mark.parametrize("mode", ["fuzzy", "", "HYBRID", 1, None, ["hybrid"]])
def test_a_search_mode_is_one_of_three(desk: Desk, shop: Path, mode: object) -> None:
    fault = desk.fault("search_code", path=str(shop), query="order", search_mode=mode)
    check_invalid(fault, "search_mode")


def test_a_project_must_be_indexed_before_it_is_searched(desk: Desk, tmp_path: Path) -> None:
    go_shop(tmp_path)
    fault = desk.fault("search_code", path=str(tmp_path), query="order")
    assert code_of(fault) == NOT_INDEXED
    assert fault.details["reason"] == "Project not indexed. Run index_codebase first."


# --- search_code: filters --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["function", "method", "struct", "interface", "type"])
def test_a_filter_of_symbol_types_leaves_only_these(desk: Desk, shop: Path, kind: str) -> None:
    found = desk.found(shop, "order", limit=100, filters={"symbol_types": [kind]})
    assert {hit["symbol"]["kind"] for hit in found} == ({kind} if kind != "type" else set())


def test_several_symbol_types_are_any_of_them(desk: Desk, shop: Path) -> None:
    found = desk.found(shop, "order", limit=100, filters={"symbol_types": ["struct", "interface"]})
    assert {hit["symbol"]["kind"] for hit in found} == {"struct", "interface"}


@pytest.mark.parametrize(
    ("pattern", "start"),
    [
        ("internal/**", "internal/"),
        ("internal/order/*", "internal/order/"),
        ("internal/order", "internal/order/"),
        ("*_test.go", "internal/order/order_test.go"),
        ("**/billing/*.go", "internal/billing/"),
        ("cmd/{shop,other}/main.go", "cmd/shop/main.go"),
        ("internal/[b]illing/**", "internal/billing/"),
    ],
)
def test_a_file_pattern_is_a_glob(desk: Desk, shop: Path, pattern: str, start: str) -> None:
    found = desk.paths(shop, "order Total invoice", filters={"file_pattern": pattern})
    assert found
    assert all(path.startswith(start) for path in found)


def test_packages_are_named_by_name_folder_or_import_path(desk: Desk, shop: Path) -> None:
    wanted = desk.paths(shop, "Total", filters={"packages": ["billing"]})
    assert wanted == {"internal/billing/billing.go"}
    for name in ("internal/billing", "github.com/dev/shop/internal/billing"):
        assert desk.paths(shop, "Total", filters={"packages": [name]}) == wanted
    both = desk.paths(shop, "Total", filters={"packages": ["billing", "main"]})
    assert both == {*wanted, "cmd/shop/main.go"}
    assert desk.paths(shop, "Total", filters={"packages": ["nowhere"]}) == set()


def test_filters_hold_together(desk: Desk, shop: Path) -> None:
    filters = {
        "symbol_types": ["struct"],
        "file_pattern": "internal/order/**",
        "ddd_patterns": ["entity"],
        "packages": ["order"],
    }
    found = desk.found(shop, "order", filters=filters)
    assert {hit["symbol"]["name"] for hit in found} == {"Order", "OrderLine"}
    assert desk.found(shop, "order", filters={**filters, "packages": ["billing"]}) == []


def test_an_empty_filter_is_none(desk: Desk, shop: Path) -> None:
    plain = desk.found(shop, "order")
    empty: dict[str, Any] = {"symbol_types": [], "ddd_patterns": [], "packages": [], "min_relevance": 0.0}
    for filters in ({}, None, empty):
        assert desk.found(shop, "order", filters=filters) == plain


@pytest.mark.parametrize(
    ("place", "filters"),
    [
        ("filters", "order"),
        ("filters", ["function"]),
        ("colour is not a field of", {"colour": "red"}),
        ("filters.symbol_types", {"symbol_types": "function"}),
        ("filters.symbol_types[0]", {"symbol_types": ["widget"]}),
        ("filters.symbol_types[1]", {"symbol_types": ["function", "'; DROP TABLE chunks; --"]}),
        ("filters.ddd_patterns[0]", {"ddd_patterns": ["Aggregate"]}),
        ("filters.ddd_patterns", {"ddd_patterns": None}),
        ("filters.file_pattern", {"file_pattern": ""}),
        ("filters.file_pattern", {"file_pattern": "../**"}),
        ("filters.file_pattern", {"file_pattern": "internal/../../etc/*"}),
        ("filters.file_pattern", {"file_pattern": "{open"}),
        ("filters.file_pattern", {"file_pattern": "x" * 1_001}),
        ("filters.file_pattern", {"file_pattern": 7}),
        ("filters.packages[0]", {"packages": [""]}),
        ("filters.packages", {"packages": "order"}),
        ("filters.packages", {"packages": ["x"] * 51}),
        ("filters.min_relevance", {"min_relevance": -0.01}),
        ("filters.min_relevance", {"min_relevance": 1.01}),
        ("filters.min_relevance", {"min_relevance": "0.5"}),
        ("filters.min_relevance", {"min_relevance": None}),
        ("filters.min_relevance", {"min_relevance": True}),
    ],
)
def test_a_malformed_filter_is_refused_by_its_name(
    desk: Desk, shop: Path, place: str, filters: object
) -> None:
    fault = desk.fault("search_code", path=str(shop), query="order", filters=filters)
    check_invalid(fault, "filters")
    assert str(fault.details["reason"]).startswith(f"{place} ")


@pytest.mark.parametrize("text", ["'; DROP TABLE chunks; --", '" OR "1"="1', "order') OR 1=1 --", "%"])
def test_text_in_a_filter_is_never_run(desk: Desk, shop: Path, text: str) -> None:
    for filters in ({"packages": [text]}, {"file_pattern": text}):
        assert desk.found(shop, "order", filters=filters) == []
    assert desk.found(shop, "order")


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword"])
@pytest.mark.parametrize("query", ["order", "cancel an order", "Total"])
def test_raising_the_least_relevance_only_takes_away(desk: Desk, shop: Path, mode: str, query: str) -> None:
    every = desk.found(shop, query, limit=100, search_mode=mode)
    before = every
    for least in (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0):
        answer = desk.search(shop, query, limit=100, search_mode=mode, filters={"min_relevance": least})
        found = answer["results"]
        assert found == before[: len(found)]
        assert all(hit["relevance_score"] >= least - 0.0001 for hit in found)
        rest = before[len(found) :]
        assert all(hit["relevance_score"] <= least + 0.0001 for hit in rest)
        if least:
            assert answer["statistics"]["total_results"] == len(found)
        before = found


# --- search_code: any text is a query ----------------------------------------------------------------


@pytest.mark.parametrize("query", FTS_SYNTAX)
def test_the_syntax_of_the_search_engine_means_nothing(desk: Desk, shop: Path, query: str) -> None:
    for mode in ("hybrid", "keyword", "vector"):
        assert desk.search(shop, query, search_mode=mode)["success"] is True
    assert desk.found(shop, "NewMoney", search_mode="keyword")


@settings(max_examples=80, deadline=None)
@given(
    query=st.one_of(
        st.text(min_size=1, max_size=60).filter(str.strip),
        st.text(alphabet="\"*()^:+-{}'\\ aANDORTNE,", min_size=1, max_size=40).filter(str.strip),
    ),
    mode=st.sampled_from(["keyword", "vector", "hybrid"]),
)
@example(query='"a" "', mode="keyword")
def test_any_text_is_a_query(desk: Desk, shop: Path, query: str, mode: str) -> None:
    try:
        answer = desk.search(shop, query, search_mode=mode)
    except BadText:
        assert "\0" in query
    else:
        assert answer["success"] is True


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ('"Cancel ends the order"', {"internal/order/order.go"}),
        ('"cancel ENDS the order"', {"internal/order/order.go"}),
        ('"o.lines = append(o.lines, line)"', {"internal/order/order.go"}),
        ('"amount" "currency string"', {"internal/order/money.go"}),
        ('money "Equals compares"', {"internal/order/money.go"}),
        ('"order the ends Cancel"', set()),
        ('"Cancel ends" "Equals compares"', set()),
    ],
)
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_a_quoted_phrase_is_found_letter_by_letter(
    desk: Desk, shop: Path, query: str, paths: set[str], mode: str
) -> None:
    assert desk.paths(shop, query, search_mode=mode) == paths


# --- search_code: what is remembered ------------------------------------------------------------------


def test_the_second_search_comes_from_the_cache_until_something_changes(desk: Desk, tmp_path: Path) -> None:
    go_shop(tmp_path)
    desk.index(tmp_path)

    def is_hit(query: str = "cancel an order", **more: Any) -> bool:
        hit: bool = desk.search(tmp_path, query, **more)["statistics"]["cache_hit"]
        return hit

    assert [is_hit(), is_hit()] == [False, True]
    assert not is_hit(limit=3)
    assert not is_hit(search_mode="keyword")
    assert not is_hit(filters={"symbol_types": ["function"]})
    desk.index(tmp_path)
    assert is_hit(), "a run that changed nothing"
    grown(
        tmp_path,
        {"internal/new.go": "package internal\n\n// Again cancels an order.\nfunc Again() {}\n"},
    )
    desk.index(tmp_path)
    assert [is_hit(), is_hit()] == [False, True]
    assert "internal/new.go" in desk.paths(tmp_path, "cancel an order")
    grown(
        tmp_path, {"internal/new.go": "package internal\n\n// Twice cancels an order.\nfunc Twice() {}\n"}
    )
    assert not is_hit(), "a file that was found has changed"


# --- get_status ---------------------------------------------------------------------------------------


def test_a_project_that_is_not_indexed_says_so(desk: Desk, tmp_path: Path) -> None:
    answer = desk.status(tmp_path)
    assert answer["message"] == "Project not indexed. Run index_codebase to create index."
    assert (answer["success"], answer["indexed"]) == (True, False)
    assert [answer[name] for name in ("project", "statistics", "health")] == [None, None, None]


def test_a_project_that_is_indexed_tells_everything(desk: Desk, tmp_path: Path) -> None:
    go_shop(tmp_path)
    taken = desk.index(tmp_path)
    answer = desk.status(tmp_path)
    assert (answer["success"], answer["indexed"], answer["indexing"]) == (True, True, False)
    assert answer["project"] == {
        "id": taken["project_id"],
        "root_path": str(tmp_path),
        "module_name": "github.com/dev/shop",
        "go_version": "1.21",
        "index_version": "1.0.0",
    }
    figures, done = answer["statistics"], taken["statistics"]
    assert figures["total_files"] == done["files_indexed"]
    assert figures["total_symbols"] == done["symbols_extracted"]
    assert figures["total_chunks"] == done["chunks_created"]
    assert figures["total_embeddings"] == done["embeddings_generated"]
    assert figures["index_size_mb"] > 0
    assert figures["indexing_duration_seconds"] > 0
    at = datetime.fromisoformat(figures["last_indexed_at"])
    assert at.tzinfo is not None
    assert figures["languages"]["go"] >= 7
    assert answer["health"] | {"embedding_model": ""} == {
        "database_accessible": True,
        "embeddings_available": True,
        "fts_indexes_built": True,
        "embedding_model": "",
    }
    assert answer["health"]["embedding_model"]
    assert answer["message"] == f"Project indexed successfully with {figures['total_files']} files"


def test_without_a_go_mod_there_is_no_module(desk: Desk, tmp_path: Path) -> None:
    desk.index(grown(tmp_path, {"tool.py": "def tool():\n    pass\n"}))
    project = desk.status(tmp_path)["project"]
    assert (project["module_name"], project["go_version"]) == (None, None)


def test_status_counts_what_has_changed_since(desk: Desk, tmp_path: Path) -> None:
    go_shop(tmp_path)
    desk.index(tmp_path)

    def stale() -> tuple[int, int, int, bool]:
        found = desk.status(tmp_path)["staleness"]
        names = ("files_changed", "files_added", "files_deleted", "is_stale")
        changed, added, deleted, is_stale = (found[name] for name in names)
        return changed, added, deleted, is_stale

    assert stale() == (0, 0, 0, False)
    os.utime(tmp_path / "internal/order/order.go")
    assert stale() == (0, 0, 0, False), "touched, and as it was"
    grown(tmp_path, {"internal/order/money.go": "package order\n"})
    assert stale() == (1, 0, 0, True)
    grown(tmp_path, {"a.go": "package a\n", "b.go": "package b\n"})
    assert stale() == (1, 2, 0, True)
    (tmp_path / "internal/billing/billing.go").unlink()
    assert stale() == (1, 2, 1, True)
    grown(tmp_path, {"photo.png": b"\x89PNG", "vendor/x/x.go": "package x\n"})
    assert stale() == (1, 2, 1, True), "what is not wanted is not missed"
    desk.index(tmp_path)
    assert stale() == (0, 0, 0, False)


def test_a_generated_file_that_is_written_by_hand_now_counts_as_changed(desk: Desk, tmp_path: Path) -> None:
    go_shop(tmp_path)
    desk.index(tmp_path)
    grown(tmp_path, {"internal/order/status_string.go": "package order\n\nfunc ByHand() {}\n"})
    assert desk.status(tmp_path)["staleness"]["files_changed"] == 1


# --- at once -----------------------------------------------------------------------------------------


def test_searches_and_runs_at_once_spoil_nothing(desk: Desk, tmp_path: Path) -> None:
    """Twice the same file: a search sees the tree before a change or after it, never half of it."""

    def written(word: str) -> dict[str, str]:
        return {
            f"p{n}.go": f"package p\n\n// {word} number {n}\nfunc Shared{n}() {{}}\n" for n in range(30)
        }

    grown(tmp_path, written("before"))
    desk.index(tmp_path)

    async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await desk.pipeline.call(tool, {"path": str(tmp_path), **arguments}, HERE)
        return answer.data

    async def together() -> list[dict[str, Any]]:
        grown(tmp_path, written("after"))
        runs = [ask("index_codebase", force_reindex=True)]
        searches = [
            ask("search_code", query=query, limit=100, search_mode=mode)
            for query in ("Shared7", "number", "Shared")
            for mode in ("keyword", "hybrid", "vector")
            for _ in range(3)
        ]
        status = [ask("get_status") for _ in range(5)]
        return await asyncio.gather(*runs, *searches, *status)

    answers = desk.run(together())
    assert answers[0]["statistics"]["files_indexed"] == 30
    for answer in answers[1:28]:
        assert answer["results"]
        for hit in answer["results"]:
            assert hit["symbol"]["kind"] != "section" or "package p" in hit["content"]
            words = {word for word in ("before", "after") if word in hit["content"]}
            assert len(words) <= 1
    assert {answer["statistics"]["total_files"] for answer in answers[28:]} == {30}
    assert desk.paths(tmp_path, '"after number"') == {f"p{n}.go" for n in range(30)}
    assert desk.paths(tmp_path, '"before number"') == set()


# --- over the wire -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(daemon: Daemon) -> Session:
    return daemon.session(OLD_WIRE)


@pytest.fixture(scope="module")
def remote_shop(session: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = go_shop(tmp_path_factory.mktemp("remote"))
    assert structured(session.call("index_codebase", path=str(root)))["success"] is True
    return root


def test_the_tools_answer_a_client_over_http(session: Session, remote_shop: Path) -> None:
    found = structured(session.call("search_code", path=str(remote_shop), query="NewMoney"))
    assert found["results"][0]["symbol"]["name"] == "NewMoney"
    status = structured(session.call("get_status", path=str(remote_shop)))
    assert status["project"]["module_name"] == "github.com/dev/shop"


def test_a_clients_errors_have_the_codes_of_the_contract(
    session: Session, daemon: Daemon, remote_shop: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    go_shop(tmp_path / "new")
    path = {"path": str(remote_shop)}
    for code, tool, arguments in (
        (INVALID, "index_codebase", {}),
        (INVALID, "index_codebase", {"path": "relative"}),
        (INVALID, "get_status", {"path": str(tmp_path / "missing")}),
        (INVALID, "search_code", {**path, "query": "order", "limit": 101}),
        (NO_PROJECT, "index_codebase", {"path": str(tmp_path / "empty")}),
        (NOT_INDEXED, "search_code", {"path": str(tmp_path / "new"), "query": "order"}),
        (EMPTY_QUERY, "search_code", {**path, "query": "  "}),
    ):
        message = session.call(tool, **arguments)
        assert message["error"]["code"] == code, message
        assert message["error"]["data"]["details"] if code == INVALID else True
    with run_elsewhere(daemon.data_dir, remote_shop):
        assert session.call("index_codebase", **path)["error"]["code"] == RUNNING


def test_a_clients_error_names_the_parameter_and_the_reason(session: Session) -> None:
    error = session.call("index_codebase", path="relative")["error"]
    details = error["data"]["details"]
    assert details["param"] == "path"
    assert details["reason"]


def test_a_newer_client_gets_the_same_as_a_tools_error(daemon: Daemon, tmp_path: Path) -> None:
    result = daemon.session().call("search_code", path=str(tmp_path), query="order")["result"]
    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "IDX_003"


def test_the_listing_has_the_parameters_of_the_contract(session: Session) -> None:
    listed = {each["name"]: each for each in session.rpc("tools/list").json()["result"]["tools"]}
    schemas = {name: listed[name]["inputSchema"] for name in TOOLS}
    assert schemas["index_codebase"]["required"] == ["path"]
    assert schemas["get_status"]["required"] == ["path"]
    assert set(schemas["search_code"]["required"]) == {"path", "query"}
    kinds = {name: schema["type"] for name, schema in schemas["index_codebase"]["properties"].items()}
    of_every_tool = {"branch_id": "string", "token_budget": "integer"}
    assert kinds == {
        "path": "string",
        "force_reindex": "boolean",
        "include_tests": "boolean",
        "include_vendor": "boolean",
        **of_every_tool,
    }
    asked = schemas["search_code"]["properties"]
    assert (asked["limit"]["minimum"], asked["limit"]["maximum"]) == (1, 100)
    assert asked["search_mode"]["enum"] == ["hybrid", "vector", "keyword"]
    assert {"path", "query", "limit", "filters", "search_mode"} <= set(asked)


def test_a_run_tells_its_progress_to_a_client_that_asks(session: Session, remote_shop: Path) -> None:
    asked = {
        "name": "index_codebase",
        "arguments": {"path": str(remote_shop), "force_reindex": True},
        "_meta": {"progressToken": "run"},
    }
    text = session.rpc("tools/call", asked).text
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    messages = [json.loads(line) for line in data if line.strip()]
    told = [each["params"] for each in messages if each.get("method") == "notifications/progress"]
    assert told
    assert {each["progressToken"] for each in told} == {"run"}
    assert told[-1]["progress"] == told[-1]["total"]
    assert messages[-1]["result"]["structuredContent"]["success"] is True


def test_a_preview_has_every_field_and_shorter_texts(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    full, hits = (desk.found(shop, "order total", limit=5, detail=each) for each in ("full", "preview"))
    assert hits
    assert all(len(hit["content"]) <= 200 for hit in hits)
    assert all(hit["context_before"] == hit["context_after"] == "" for hit in hits)
    for part in ("symbol", "file"):
        assert [set(hit[part]) for hit in hits] == [set(hit[part]) for hit in full]
    assert {frozenset(hit) for hit in hits} == {frozenset(hit) for hit in full}


def test_a_reference_says_what_stands_where_and_nothing_else(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    full = desk.search(shop, "order total", limit=5)
    refs = desk.search(shop, "order total", limit=5, detail="refs")
    assert set(refs) == {"success", "results", "message"}
    assert refs["message"] == full["message"]
    for hit, whole in zip(refs["results"], full["results"], strict=True):
        assert set(hit) == {"relevance_score", "symbol", "file"}
        assert set(hit["file"]) == {"path", "start_line", "end_line"}
        named = {"name", "kind", "container"} if whole["symbol"]["container"] else {"name", "kind"}
        assert set(hit["symbol"]) == named
        assert hit["relevance_score"] == whole["relevance_score"]
        assert hit["symbol"].items() <= whole["symbol"].items()
        assert hit["file"].items() <= whole["file"].items()
    counter = O200kCounter()
    tokens = [counter.count(as_json(hit)) for hit in refs["results"]]
    assert sum(tokens) / len(tokens) <= 45
