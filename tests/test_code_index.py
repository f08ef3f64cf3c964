"""The code index against real files: what it takes in, what it leaves out, and how it follows changes."""

import asyncio
import os
import shutil
import sqlite3
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from code_projects import BROKEN, GO_SHOP, HERE, Desk, git, go_shop, grown, open_desk
from contextd.adapters import digest_processes
from contextd.adapters.index_locks import FileIndexLocks
from contextd.adapters.sqlite.code_vectors import CodeVectors
from contextd.domain.callers import Principal
from contextd.domain.errors import Forbidden, IndexingInProgress, NotIndexed
from contextd.services.projects import project_at
from contextd.services.source_tree import SourceTree
from deadly_digest import DEADLY, digest_or_die


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return go_shop(tmp_path / "shop")


def statistics(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["statistics"]
    return found


def numbered(count: int, word: str = "Widget") -> dict[str, str]:
    """So many small files, each with a name of its own."""
    return {
        f"pkg{n % 7}/file{n:03d}.go": f"package pkg\n\n// {word}{n} is number {n}.\nfunc {word}{n}() {{}}\n"
        for n in range(count)
    }


def everything_in(database: Path) -> bytes:
    """All that lies in an index: the bytes of its files, and its texts unpacked."""
    raw = b"".join(path.read_bytes() for path in sorted(database.parent.glob(f"{database.name}*")))
    with closing(sqlite3.connect(database)) as connection:
        texts = [zlib.decompress(content) for (content,) in connection.execute("SELECT content FROM blobs")]
    return b"\n".join([raw, *texts])


def held_paths(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        return {path for (path,) in connection.execute("SELECT path FROM files")}


# --- following changes -------------------------------------------------------------------------


def test_a_second_run_takes_nothing_in(desk: Desk, shop: Path) -> None:
    """Though the files are so young that their times prove nothing: they are read, and are the same."""
    first = statistics(desk.index(shop))
    again = statistics(desk.index(shop))
    assert first["files_indexed"] > 0
    assert first["files_removed"] == 0
    assert (again["files_indexed"], again["files_removed"], again["symbols_extracted"]) == (0, 0, 0)
    assert again["skipped"]["unchanged"] == first["files_indexed"]


def test_only_what_changed_is_read(desk: Desk, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By times where they prove something: these files are an hour old, and only one is opened."""
    before = shop.stat().st_mtime - 3600
    for path in shop.rglob("*"):
        os.utime(path, (before, before))
    settled(monkeypatch)
    desk.index(shop)
    reads: list[str] = []
    original = desk.house.code.index._taking_in._read

    def counted(tree: Any, found: Any, rules: Any) -> Any:
        reads.append(found.path)
        return original(tree, found, rules)

    monkeypatch.setattr(desk.house.code.index._taking_in, "_read", counted)
    grown(shop, {"internal/order/money.go": "package order\n\nfunc ExchangeRate() int { return 2 }\n"})
    taken = statistics(desk.index(shop))
    assert reads == ["internal/order/money.go"]
    assert taken["files_indexed"] == 1
    assert desk.paths(shop, "ExchangeRate", search_mode="keyword") == {"internal/order/money.go"}
    assert desk.found(shop, '"Plus adds two amounts"') == []


def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change times cannot be set; so the rule for young files is told that time has passed."""
    monkeypatch.setattr("contextd.services.taking_in._SETTLED_NS", 0)


def test_a_deleted_file_leaves_the_index(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    (shop / "internal/order/money.go").unlink()
    assert statistics(desk.index(shop))["files_removed"] == 1
    assert "internal/order/money.go" not in desk.paths(shop, "Money amount currency")
    assert b"Plus adds two amounts" not in unpacked(desk.database(shop))


def unpacked(database: Path) -> bytes:
    with closing(sqlite3.connect(database)) as connection:
        return b"\n".join(
            zlib.decompress(row[0]) for row in connection.execute("SELECT content FROM blobs")
        )


def test_a_deleted_folder_leaves_the_index(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    shutil.rmtree(shop / "internal/order")
    desk.index(shop)
    assert not any(path.startswith("internal/order") for path in held_paths(desk.database(shop)))


def test_a_renamed_file_is_found_under_its_new_name_and_not_read_anew(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    (shop / "internal/order/money.go").rename(shop / "internal/order/amount.go")
    taken = statistics(desk.index(shop))
    assert (taken["files_indexed"], taken["files_removed"], taken["files_reused"]) == (1, 1, 1)
    assert desk.paths(shop, '"Plus adds two amounts"') == {"internal/order/amount.go"}


def test_a_file_that_becomes_a_folder_and_back(desk: Desk, shop: Path) -> None:
    grown(shop, {"swap.go": "package shop\n\nfunc AsFile() {}\n"})
    desk.index(shop)
    (shop / "swap.go").unlink()
    grown(shop, {"swap.go/inner.go": "package swap\n\nfunc AsFolder() {}\n"})
    desk.index(shop)
    assert desk.paths(shop, "AsFolder", search_mode="keyword") == {"swap.go/inner.go"}
    assert "swap.go" not in held_paths(desk.database(shop))
    shutil.rmtree(shop / "swap.go")
    grown(shop, {"swap.go": "package shop\n\nfunc AsFile() {}\n"})
    desk.index(shop)
    assert desk.paths(shop, "AsFile", search_mode="keyword") == {"swap.go"}


def test_force_reads_everything_again_and_finds_the_same(desk: Desk, shop: Path) -> None:
    first = desk.index(shop)
    before = desk.found(shop, "cancel an order", limit=100)
    again = desk.index(shop, force_reindex=True)
    kept = ("files_indexed", "symbols_extracted", "chunks_created", "embeddings_generated")
    assert [statistics(again)[name] for name in kept] == [statistics(first)[name] for name in kept]
    assert statistics(again)["files_reused"] == 0
    assert again["errors"] == first["errors"]
    after = desk.found(shop, "cancel an order", limit=100)
    for hit in before + after:
        del hit["chunk_id"]
    assert after == before


def test_an_index_outlives_the_process_that_made_it(tmp_path: Path) -> None:
    shop = go_shop(tmp_path / "shop")
    with open_desk(tmp_path / "data") as desk:
        desk.index(shop)
        before = desk.found(shop, "NewCheckoutService")
    with open_desk(tmp_path / "data") as desk:
        assert desk.found(shop, "NewCheckoutService") == before
        assert statistics(desk.index(shop))["files_indexed"] == 0


# --- what is left out --------------------------------------------------------------------------


def test_tests_are_taken_in_unless_they_are_not_wanted(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    assert [hit["file"]["test"] for hit in desk.found(shop, "TestTotal", limit=1)] == [True]
    taken = statistics(desk.index(shop, include_tests=False))
    assert taken["skipped"]["tests"] == 1
    assert taken["files_removed"] == 1
    assert "internal/order/order_test.go" not in desk.paths(shop, "TestTotal")
    assert desk.status(shop)["staleness"]["is_stale"] is False, "what is not wanted is not missing"
    desk.index(shop)
    assert "internal/order/order_test.go" in desk.paths(shop, "TestTotal")


def test_vendor_is_left_out_unless_it_is_wanted(desk: Desk, shop: Path) -> None:
    assert statistics(desk.index(shop))["skipped"]["vendor"] == 1
    vendored = "vendor/github.com/acme/tax/tax.go"
    assert vendored not in desk.paths(shop, "VendoredTaxRate")
    desk.index(shop, include_vendor=True)
    assert vendored in desk.paths(shop, "VendoredTaxRate")


def test_what_git_ignores_is_left_out(desk: Desk, shop: Path) -> None:
    grown(
        shop,
        {
            ".gitignore": "build/\n*_local.go\n",
            "build/made.go": "package build\n\nfunc IgnoredBuild() {}\n",
            "mine_local.go": "package shop\n\nfunc IgnoredLocal() {}\n",
        },
    )
    taken = statistics(desk.index(shop))
    assert taken["skipped"]["ignored"] == 2
    assert not {"build/made.go", "mine_local.go"} & held_paths(desk.database(shop))
    (shop / ".gitignore").write_text("build/\n")
    desk.index(shop)
    assert {"build/made.go", "mine_local.go"} & held_paths(desk.database(shop)) == {"mine_local.go"}


def test_an_ignore_file_of_our_own_says_what_the_index_leaves_out(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    grown(shop, {".contextdignore": "internal/billing/\n"})
    assert statistics(desk.index(shop))["files_removed"] == 1
    assert "internal/billing/billing.go" not in held_paths(desk.database(shop))


def test_links_are_not_followed_neither_round_in_circles_nor_out(desk: Desk, tmp_path: Path) -> None:
    outside = grown(tmp_path / "outside", {"secret.go": "package outside\n\nfunc ForeignPlanXyzzy() {}\n"})
    shop = go_shop(tmp_path / "shop")
    (shop / "loop").symlink_to(shop)
    (shop / "internal" / "up").symlink_to("..")
    (shop / "out").symlink_to(outside)
    (shop / "out.go").symlink_to(outside / "secret.go")
    (shop / "nowhere.go").symlink_to(tmp_path / "missing")
    assert statistics(desk.index(shop))["skipped"]["links"] == 5
    assert b"foreignplanxyzzy" not in everything_in(desk.database(shop)).lower()
    assert "out.go" not in desk.paths(shop, "ForeignPlanXyzzy")


def test_a_file_that_becomes_a_link_out_of_the_project_is_not_read_by_a_search(
    desk: Desk, tmp_path: Path
) -> None:
    """A search takes changed files in again: not through a link that was put in their place."""
    outside = grown(tmp_path, {"outside/plan.go": "package outside\n\nfunc ForeignPlanPlugh() {}\n"})
    shop = go_shop(tmp_path / "shop")
    desk.index(shop)
    (shop / "internal/order/money.go").unlink()
    (shop / "internal/order/money.go").symlink_to(outside / "outside/plan.go")
    assert desk.paths(shop, "Money amount currency") >= {"internal/order/order.go"}
    assert b"foreignplanplugh" not in everything_in(desk.database(shop)).lower()


def test_the_project_may_be_named_by_a_link_to_it(desk: Desk, tmp_path: Path) -> None:
    shop = go_shop(tmp_path / "shop")
    (tmp_path / "alias").symlink_to(shop)
    desk.index(tmp_path / "alias")
    assert desk.status(shop)["indexed"] is True
    assert desk.status(tmp_path / "alias")["project"] == desk.status(shop)["project"]


def test_binary_generated_and_large_files_are_skipped_and_counted(desk: Desk, shop: Path) -> None:
    grown(
        shop,
        {
            "image.go": b"package x\n\0\0\0\x01",
            "huge.go": "package x\n" + "// a comment that goes on and on\n" * 40_000,
            "bundle.js": "function a(){};" * 1_000,
        },
    )
    taken = statistics(desk.index(shop))
    assert {reason: taken["skipped"][reason] for reason in ("binary", "too_large", "generated")} == {
        "binary": 1,
        "too_large": 1,
        "generated": 2,
    }
    assert taken["files_removed"] == 0
    held = held_paths(desk.database(shop))
    assert not {"image.go", "huge.go", "bundle.js", "internal/order/status_string.go"} & held
    assert statistics(desk.index(shop))["skipped"] == {
        **taken["skipped"],
        "unchanged": taken["files_indexed"],
    }


def test_a_generated_file_that_is_taken_over_by_hand_enters_the_index(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    name = "internal/order/status_string.go"
    (shop / name).write_text(GO_SHOP[name].partition("\n")[2])
    assert statistics(desk.index(shop))["files_indexed"] == 1
    assert name in desk.paths(shop, "GeneratedStatusName")
    (shop / name).write_text(GO_SHOP[name])
    assert statistics(desk.index(shop))["files_removed"] == 1
    assert name not in desk.paths(shop, "GeneratedStatusName")


def test_a_file_that_cannot_be_read_is_told_and_tried_again(
    desk: Desk, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "internal/order/money.go"
    original = SourceTree.read

    def read(tree: SourceTree, path: str, most: int) -> bytes | None:
        if path == name:
            raise PermissionError
        return original(tree, path, most)

    with monkeypatch.context() as patched:
        patched.setattr(SourceTree, "read", read)
        answer = desk.index(shop)
        assert desk.symbol(shop, "Order")["coverage"]["files_partly_read"] == [name]
    assert answer["errors"] == [{"file": name, "error": "the file cannot be read", "line": 1}]
    assert statistics(answer)["files_failed"] == 1
    assert desk.status(shop)["staleness"]["is_stale"] is True
    assert statistics(desk.index(shop))["files_indexed"] == 1


# --- what is hard to read ----------------------------------------------------------------------


def test_a_syntax_error_is_told_with_its_line_and_the_rest_is_found(desk: Desk, shop: Path) -> None:
    grown(shop, {"internal/broken/parser.go": BROKEN})
    answer = desk.index(shop)
    assert statistics(answer)["files_failed"] == 1
    told = answer["errors"][0]
    assert told["file"] == "internal/broken/parser.go"
    assert told["error"].startswith("syntax error: ")
    assert BROKEN.splitlines()[told["line"] - 1].startswith("func Unfinished(")
    (hit, *_) = desk.found(shop, "ParseHeader")
    assert (hit["file"]["path"], hit["symbol"]["name"]) == ("internal/broken/parser.go", "ParseHeader")


CAFE = "Café says what the café serves: crème brûlée."


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("utf-8", b"\xef\xbb\xbf"), ("utf-16", b""), ("utf-32", b""), ("latin-1", b"")],
)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_files_are_read_in_whatever_encoding(
    desk: Desk, tmp_path: Path, encoding: str, mark: bytes, line_break: str
) -> None:
    text = f'package menu\n\n// {CAFE}\nfunc Café() string {{\n\treturn "é"\n}}\n'
    grown(tmp_path, {"menu.go": mark + text.replace("\n", line_break).encode(encoding)})
    assert desk.index(tmp_path)["errors"] == []
    (hit, *_) = desk.found(tmp_path, "Café")
    assert hit["symbol"]["name"] == "Café"
    assert hit["symbol"]["doc_comment"] == CAFE
    assert (hit["file"]["start_line"], hit["file"]["end_line"]) == (3, 6)
    assert hit["content"] == "\n".join(text.splitlines()[2:6])


def test_odd_names_of_files_are_kept_as_they_are(desk: Desk, tmp_path: Path) -> None:
    names = ["a b.go", "ünï.go", "quote'.go", 'double".go', "per%cent.go", "semi;colon.go", "x[1].go"]
    files = {name: f"package odd\n\nfunc Odd{n}Name() {{}}\n" for n, name in enumerate(names)}
    desk.index(grown(tmp_path, files))
    for n, name in enumerate(names):
        assert name in desk.paths(tmp_path, f"Odd{n}Name", search_mode="keyword")


def test_an_empty_file_and_one_of_a_single_endless_line(desk: Desk, tmp_path: Path) -> None:
    grown(tmp_path, {"empty.go": "", "blank.go": "\n\n\n", "one.go": "package one // " + "long " * 700})
    answer = desk.index(tmp_path)
    assert statistics(answer)["files_indexed"] == 3
    assert statistics(answer)["chunks_over_window"] == 1
    assert desk.paths(tmp_path, '"long long"') == {"one.go"}


# --- secrets -----------------------------------------------------------------------------------

KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "\n".join(
    f"MIIEpAIBAAKCAQEA{n}x7Vq2Tj9kQwLpZ" for n in range(9)
)
KEY += "\n-----END RSA PRIVATE KEY-----"
SECRETIVE = f"""package vault

const pem = `{KEY}`

const token = "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"

// OpenVault stands after the key.
func OpenVault() string {{
	return pem + token
}}
"""


def test_no_secret_of_a_source_file_enters_the_index(desk: Desk, tmp_path: Path) -> None:
    desk.index(grown(tmp_path, {"vault.go": SECRETIVE}))
    inside = everything_in(desk.database(tmp_path)).lower()
    for part in (b"ghp_wwpw5k4axcat4fnp0ucnzwjuvfk6lo0pinux", b"wwpw5k4", b"miiepaibaakcaqea"):
        assert part not in inside
    assert b"[redacted:" in inside
    for query in ("OpenVault", "private key", "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"):
        answer = str(desk.search(tmp_path, query))
        assert "MIIEpAIBAAKCAQEA" not in answer
        assert "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" not in answer


def test_lines_stay_where_they_are_after_a_key_of_many_lines(desk: Desk, tmp_path: Path) -> None:
    desk.index(grown(tmp_path, {"vault.go": SECRETIVE}))
    (hit, *_) = desk.found(tmp_path, "OpenVault")
    lines = SECRETIVE.splitlines()
    assert lines[hit["file"]["start_line"] - 1] == "// OpenVault stands after the key."
    assert lines[hit["file"]["end_line"] - 1] == "}"
    (definition,) = desk.symbol(tmp_path, "OpenVault")["definitions"]
    assert lines[definition["line"] - 1].startswith("func OpenVault()")


# --- worktrees, clones, projects ---------------------------------------------------------------


def test_a_worktree_of_the_same_repository_costs_almost_nothing(desk: Desk, tmp_path: Path) -> None:
    shop = go_shop(tmp_path / "shop")
    git(shop, "init")
    git(shop, "add", ".")
    git(shop, "commit", "-m", "all")
    first = statistics(desk.index(shop))
    git(shop, "worktree", "add", "-b", "side", str(tmp_path / "side"))
    grown(tmp_path / "side", {"internal/side.go": "package internal\n\nfunc OnTheSide() {}\n"})
    taken = statistics(desk.index(tmp_path / "side"))
    assert (taken["files_indexed"], taken["files_reused"]) == (
        first["files_indexed"] + 1,
        first["files_indexed"],
    )
    assert desk.database(shop) == desk.database(tmp_path / "side")
    assert desk.paths(tmp_path / "side", "OnTheSide", search_mode="keyword") == {"internal/side.go"}
    assert "internal/side.go" not in desk.paths(shop, "OnTheSide")
    assert desk.status(shop)["statistics"]["total_files"] == first["files_indexed"]
    desk.index(shop, force_reindex=True)
    assert desk.paths(tmp_path / "side", "OnTheSide", search_mode="keyword") == {"internal/side.go"}


def test_a_clone_starts_from_its_sibling_and_keeps_nothing_else_of_it(tmp_path: Path) -> None:
    shop = go_shop(tmp_path / "shop")
    grown(
        shop,
        {"internal/plan.go": "package internal\n\n// ZanzibarPlan is private.\nfunc ZanzibarPlan() {}\n"},
    )
    with open_desk(tmp_path / "data") as desk:
        first = statistics(desk.index(shop))
        clone = tmp_path / "clone"
        shutil.copytree(shop, clone)
        (clone / "internal/plan.go").unlink()
        taken = statistics(desk.index(clone))
        assert taken["files_indexed"] == taken["files_reused"] == first["files_indexed"] - 1
        assert desk.database(clone) != desk.database(shop)
        assert b"zanzibarplan" not in unpacked(desk.database(clone)).lower()
        with closing(sqlite3.connect(desk.database(clone))) as connection:
            for table, column in (("symbols", "name"), ("uses", "name"), ("words", "names")):
                found = f"SELECT count(*) FROM {table} WHERE lower({column}) LIKE '%zanzibar%'"
                assert connection.execute(found).fetchone() == (0,), table
            matches = "SELECT count(*) FROM words WHERE words MATCH 'zanzibarplan'"
            assert connection.execute(matches).fetchone() == (0,)
            assert connection.execute("SELECT path FROM roots").fetchall() == [(str(clone),)]
        assert desk.found(shop, "ZanzibarPlan")[0]["symbol"]["name"] == "ZanzibarPlan"
        (hit, *_) = desk.found(clone, "cancel an order", limit=1)
        assert hit["symbol"]["name"] == "Cancel"


def test_projects_do_not_see_each_other(desk: Desk, tmp_path: Path) -> None:
    """Two that are alike but for their files: same tree ids, same versions, same question."""
    one = grown(tmp_path / "one", {"a.go": "package a\n\nfunc OnlyInOne() {}\n"})
    two = grown(tmp_path / "two", {"b.go": "package b\n\nfunc OnlyInTwo() {}\n"})
    desk.index(one)
    desk.index(two)
    assert desk.paths(one, "only in") == {"a.go"}
    assert desk.paths(two, "only in") == {"b.go"}
    assert desk.symbol(two, "OnlyInOne")["definitions"] == []


def test_a_token_of_one_project_does_not_reach_another(desk: Desk, tmp_path: Path) -> None:
    mine, theirs = go_shop(tmp_path / "mine"), go_shop(tmp_path / "theirs")
    desk.index(theirs)
    caller = replace(HERE, principal=Principal("mine", frozenset({project_at(str(mine)).key})))
    for tool, more in (
        ("index_codebase", {}),
        ("index_repository", {}),
        ("search_code", {"query": "order"}),
        ("get_status", {}),
        ("symbol_lookup", {"symbol": "Order"}),
    ):
        assert isinstance(desk.fault(tool, caller, path=str(theirs), **more), Forbidden), tool
        inside = str(theirs / "internal")
        assert isinstance(desk.fault(tool, caller, path=inside, **more), Forbidden), tool
    desk.call("index_codebase", caller, path=str(mine))
    assert desk.call("search_code", caller, path=str(mine), query="order")["results"]


def test_a_search_in_a_folder_of_the_project_finds_what_is_below_it(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    found = desk.paths(shop / "internal/order", "Total")
    assert found
    assert all(path.startswith("internal/order/") for path in found)
    assert desk.status(shop / "internal")["indexed"] is True


def test_a_collection_that_is_deleted_takes_its_code_index_along(desk: Desk, shop: Path) -> None:
    desk.call("collection_create", project_path=str(shop))
    desk.index(shop)
    desk.call("collection_delete", project_path=str(shop))
    assert desk.status(shop)["indexed"] is False
    assert isinstance(desk.fault("search_code", path=str(shop), query="order"), NotIndexed)
    assert unpacked(desk.database(shop)) == b""
    desk.index(shop)
    assert desk.paths(shop, "NewCheckoutService")


def test_a_project_that_has_nothing_but_a_code_index_can_be_deleted(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    desk.call("collection_delete", project_path=str(shop))
    assert desk.status(shop)["indexed"] is False


# --- as the files are now ----------------------------------------------------------------------


def test_a_hit_in_a_file_that_changed_is_shown_as_it_is_now(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    name = "internal/order/money.go"
    (shop / name).write_text("package order\n\n\n\n// NewMoney is made of gold.\nfunc NewMoney() {}\n")
    (hit, *_) = desk.found(shop, "NewMoney", search_mode="keyword")
    assert hit["content"] == "// NewMoney is made of gold.\nfunc NewMoney() {}"
    assert (hit["file"]["start_line"], hit["stale"]) == (5, False)
    assert desk.found(shop, '"Plus adds two amounts"') == []


def test_hits_of_a_deleted_file_are_gone_before_any_run(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    (shop / "internal/order/money.go").unlink()
    assert "internal/order/money.go" not in desk.paths(shop, "NewMoney amount")


def test_a_fresh_hit_is_not_called_stale(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    assert [hit["stale"] for hit in desk.found(shop, "cancel an order")].count(True) == 0


def test_a_hit_that_cannot_be_read_again_says_so(desk: Desk, shop: Path) -> None:
    """Somebody's run holds the index: the answer comes from it as it was, and is marked."""
    desk.index(shop)
    name = "internal/order/money.go"
    (shop / name).write_text("package order\n\nfunc NewMoney() {}\n")
    locks = FileIndexLocks(desk.house.settings.data_dir)

    async def search() -> Any:
        async with locks.hold(project_at(str(shop)).key, background=False, patience_s=0.0):
            asked = {"path": str(shop), "query": "NewMoney", "limit": 1, "search_mode": "keyword"}
            return (await desk.pipeline.call("search_code", asked, HERE)).data

    (hit,) = desk.run(search())["results"]
    assert (hit["file"]["path"], hit["stale"]) == (name, True)
    assert "Money{amount, currency}" in hit["content"]


# --- runs: cancelled, one at a time, seen from outside --------------------------------------------


def when_called(
    monkeypatch: pytest.MonkeyPatch, desk: Desk, name: str, act: Callable[[int], Awaitable[None]]
) -> None:
    """Put an act before a step of the store; it is told which time it is."""
    store = desk.house.code.store
    original = getattr(store, name)
    times = 0

    async def wrapped(*arguments: Any) -> Any:
        nonlocal times
        times += 1
        await act(times)
        return await original(*arguments)

    monkeypatch.setattr(store, name, wrapped)


@pytest.mark.parametrize("moment", ["staged", "stage", "change"])
def test_a_run_that_is_cancelled_leaves_the_index_as_it_was(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    old, new = f"Widget{moment}", f"Gadget{moment}"
    root = grown(tmp_path, numbered(60, old))
    desk.index(root)
    before = held_paths(desk.database(root))
    for n in range(30):
        next(root.glob(f"*/file{n:03d}.go")).unlink()
    grown(root, numbered(90, new))

    async def cancelled() -> None:
        running = asyncio.ensure_future(desk.pipeline.call("index_codebase", {"path": str(root)}, HERE))

        async def cancel(times: int) -> None:
            if times == (1 if moment == "change" else 2):
                running.cancel()

        with monkeypatch.context() as patched:
            when_called(patched, desk, moment, cancel)
            with pytest.raises(asyncio.CancelledError):
                await running

    desk.run(cancelled())
    if moment != "change":
        # A write that was under way is not undone; before it, nothing of the new tree is to be seen.
        assert held_paths(desk.database(root)) == before
        assert desk.symbol(root, f"{old}59", relation="definition")["coverage"]["files_indexed"] > 0
    desk.index(root)
    assert len(held_paths(desk.database(root))) == 90
    assert desk.paths(root, f"{new}89", search_mode="keyword", limit=1) == {"pkg5/file089.go"}
    assert desk.paths(root, f'"{old}59"') == set()


def test_progress_is_told_up_to_the_end(desk: Desk, tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    desk.call("index_codebase", replace(HERE, progress=progress), path=str(grown(tmp_path, numbered(40))))
    counted = [(done, total) for done, total, _ in told if total is not None]
    assert counted[-1] == (40.0, 40.0)
    assert [done for done, _ in counted] == sorted(done for done, _ in counted)
    assert all(done <= total for done, total in counted)
    assert told[0][0] == 0


def test_one_run_at_a_time_for_a_project(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = grown(tmp_path / "one", numbered(3, "Lone")), grown(tmp_path / "two", numbered(3, "Other"))

    async def both() -> None:
        go_on, waiting = asyncio.Event(), asyncio.Event()

        async def wait(times: int) -> None:
            waiting.set()
            await go_on.wait()

        async def index(root: Path) -> dict[str, Any]:
            return (await desk.pipeline.call("index_codebase", {"path": str(root)}, HERE)).data

        with monkeypatch.context() as patched:
            when_called(patched, desk, "stage", wait)
            first = asyncio.create_task(index(one))
            await waiting.wait()
        with pytest.raises(IndexingInProgress):
            await index(one)
        assert statistics(await index(two))["files_indexed"] == 3, "another project is not held up"
        go_on.set()
        assert statistics(await first)["files_indexed"] == 3
        assert statistics(await index(one))["files_indexed"] == 0

    desk.run(both())


def test_a_run_waits_for_work_in_the_background(desk: Desk, tmp_path: Path) -> None:
    root = grown(tmp_path, numbered(2))
    locks = FileIndexLocks(desk.house.settings.data_dir)

    async def index_meanwhile() -> dict[str, Any]:
        async with locks.hold(project_at(str(root)).key, background=True, patience_s=0.0):
            asked = asyncio.create_task(desk.pipeline.call("index_codebase", {"path": str(root)}, HERE))
            done, _ = await asyncio.wait({asked}, timeout=0.3)
            assert not done
        return (await asked).data

    assert statistics(desk.run(index_meanwhile()))["files_indexed"] == 2


def test_asking_whether_a_run_is_under_way_is_not_taken_for_one(desk: Desk, tmp_path: Path) -> None:
    """Status looks at the lock while runs begin and end: no run is refused for that."""
    root = grown(tmp_path, numbered(1))
    desk.index(root)

    async def together() -> None:
        async def ask() -> None:
            for _ in range(30):
                desk.house.code.index.is_running(project_at(str(root)))
                await asyncio.sleep(0)

        asking = asyncio.create_task(asyncio.to_thread(asyncio.run, ask()))
        for _ in range(5):
            await desk.pipeline.call("index_codebase", {"path": str(root)}, HERE)
        await asking

    desk.run(together())


# --- a crowd of files: processes of their own -----------------------------------------------------


def children() -> set[int]:
    """Processes of this one that digest files."""
    here = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    found = set()
    for child in here.read_text().split():
        try:
            line = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
        if b"spawn_main" in line:
            found.add(int(child))
    return found


def test_a_process_that_dies_on_a_file_takes_only_that_file_with_it(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = grown(tmp_path, numbered(160, "Brave"))
    grown(root, {"pkg3/deadly.go": f"package pkg\n\n// {DEADLY}\nfunc Deadly() {{}}\n"})
    with monkeypatch.context() as patched:
        patched.setattr(digest_processes, "_digest_here", digest_or_die)
        answer = desk.index(root)
    assert answer["errors"] == [
        {"file": "pkg3/deadly.go", "error": "the parser broke down on this file", "line": 1}
    ]
    assert statistics(answer)["files_indexed"] == 160
    assert statistics(answer)["files_failed"] == 1
    assert desk.paths(root, "Brave159", search_mode="keyword", limit=1) == {"pkg5/file159.go"}
    assert children() == set()
    # It is not tried again, least of all in this process; and no list of callers hides that.
    assert statistics(desk.index(root))["skipped"]["broken"] == 1
    coverage = desk.symbol(root, "Brave1")["coverage"]
    assert (coverage["complete"], coverage["not_indexed"]) == (False, {"broken": 1})
    grown(root, {"pkg3/deadly.go": "package pkg\n\nfunc Harmless() {}\n"})
    assert statistics(desk.index(root))["files_indexed"] == 1


def test_a_crowd_that_is_cancelled_leaves_no_process_behind(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = grown(tmp_path, numbered(160, "Crowd"))

    async def cancelled() -> None:
        running = asyncio.ensure_future(desk.pipeline.call("index_codebase", {"path": str(root)}, HERE))

        async def cancel(times: int) -> None:
            running.cancel()

        with monkeypatch.context() as patched:
            when_called(patched, desk, "stage", cancel)
            with pytest.raises(asyncio.CancelledError):
                await running

    desk.run(cancelled())
    assert children() == set()
    assert desk.status(root)["indexed"] is False


# --- files by globs ------------------------------------------------------------------------------


def test_files_of_a_repository_are_indexed_by_globs_and_found_by_search(desk: Desk, shop: Path) -> None:
    grown(
        shop,
        {
            "docs/guide.md": "# Guide\n\nThe walrus ships every parcel.\n",
            "docs/old/guide.md": "# Old\n\nThe dodo shipped parcels.\n",
            "docs/long.md": "word " * 1_000,
            "notes.txt": "The penguin counts parcels.\n",
        },
    )
    asked: dict[str, Any] = {
        "include_patterns": ["*.md", "*.txt"],
        "exclude_patterns": ["docs/old/**"],
        "max_file_size": 2_000,
    }
    answer = desk.call("index_repository", path=str(shop), **asked)
    assert {name: answer[name] for name in asked} == asked
    assert answer["path"] == str(shop)
    assert answer["files_indexed"] == 3
    assert answer["skipped"]["excluded"] == 1
    assert answer["skipped"]["too_large"] == 1
    assert answer["errors"] == []
    assert desk.paths(shop, "walrus ships parcel", search_mode="keyword") >= {"docs/guide.md"}
    assert desk.paths(shop, '"penguin counts"') == {"notes.txt"}
    assert desk.paths(shop, '"dodo shipped"') == set()
    again = desk.call("index_repository", path=str(shop), **asked)
    assert again["files_indexed"] == 3


def test_code_and_files_of_one_path_are_searched_together(desk: Desk, shop: Path) -> None:
    grown(shop, {"notes.memo": "The penguin cancels an order.\n"})
    code = statistics(desk.index(shop))["files_indexed"]
    desk.call("index_repository", path=str(shop), include_patterns=["*.memo"])
    found = desk.paths(shop, "cancel an order")
    assert {"notes.memo", "internal/order/order.go"} <= found
    assert desk.status(shop)["statistics"]["total_files"] == code + 1
    (shop / "notes.memo").unlink()
    desk.call("index_repository", path=str(shop), include_patterns=["*.memo"])
    assert desk.status(shop)["statistics"]["total_files"] == code
    assert desk.paths(shop, "cancel an order") >= {"internal/order/order.go"}


def test_a_file_of_both_trees_is_one_hit(desk: Desk, shop: Path) -> None:
    desk.index(shop)
    desk.call("index_repository", path=str(shop), include_patterns=["*.go"])
    found = [hit["file"]["start_line"] for hit in desk.found(shop, '"Cancel ends the order"')]
    assert len(found) == 1
    assert [place["file"] for place in desk.symbol(shop, "NewMoney")["definitions"]] == [
        "internal/order/money.go"
    ]
    assert [caller["name"] for caller in desk.symbol(shop, "NewMoney")["callers"]] == ["Money.Plus"]
    assert len(desk.symbol(shop, "NewMoney")["references"]) == 1


# --- vectors in memory -----------------------------------------------------------------------------


@pytest.fixture
def index_file(desk: Desk, tmp_path: Path) -> tuple[Path, Path]:
    root = grown(tmp_path, numbered(4, "Vector"))
    desk.index(root)
    return root, desk.database(root)


def nearest(vectors: CodeVectors, connection: sqlite3.Connection, desk: Desk) -> list[int]:
    import numpy as np

    vectors.follow(connection)
    alive = [blob for (blob,) in connection.execute("SELECT DISTINCT blob FROM files")]
    query = desk.house.code.reader.query("anything")
    return [chunk for chunk, _ in vectors.scan(query, np.array(alive, dtype=np.int64), None, 100)]


def test_readers_of_two_moments_hold_no_vector_twice(desk: Desk, index_file: tuple[Path, Path]) -> None:
    """One that began before a change looks after one that began behind it."""
    root, database = index_file
    vectors = CodeVectors(desk.house.code.reader.recipe)
    with closing(sqlite3.connect(database)) as early, closing(sqlite3.connect(database)) as late:
        early.execute("BEGIN")
        before = nearest(vectors, early, desk)
        grown(root, numbered(8, "Vector"))
        desk.index(root)
        after = nearest(vectors, late, desk)
        assert len(before) < len(after)
        assert sorted(nearest(vectors, early, desk)) == sorted(before)
        assert sorted(nearest(vectors, late, desk)) == sorted(after) == sorted(set(after))


def test_a_search_of_few_files_does_not_have_all_vectors_read_again(
    desk: Desk, index_file: tuple[Path, Path]
) -> None:
    import numpy as np

    _, database = index_file
    vectors = CodeVectors(desk.house.code.reader.recipe)
    query = desk.house.code.reader.query("anything")
    statements: list[str] = []
    with closing(sqlite3.connect(database)) as connection:
        vectors.follow(connection)
        ((blob,),) = connection.execute("SELECT min(blob) FROM files")
        few = vectors.scan(query, np.array([blob], dtype=np.int64), None, 100)
        connection.set_trace_callback(statements.append)
        assert len(nearest(vectors, connection, desk)) > len(few)
    assert not [each for each in statements if "chunks.vector" in each]


def test_a_secret_in_the_code_breaks_no_syntax(desk: Desk, tmp_path: Path) -> None:
    """What is parsed is the text as it was written; what is kept is the scrubbed one."""
    root = grown(
        tmp_path / "app",
        {
            "app.py": "def login(password: str = 'correct-horse-battery-staple-9f3a') -> None:\n"
            "    token = 'ghp_0123456789abcdefghijABCDEFGHIJ012345'\n\n\n"
            "def after() -> int:\n    return 1\n"
        },
    )
    answer = desk.index(root)
    assert answer["errors"] == []
    assert answer["statistics"]["symbols_extracted"] == 2
    assert desk.found(root, "after")[0]["file"]["start_line"] == 5
    kept = desk.database(root).read_bytes()
    assert b"ghp_0123456789" not in kept


def test_the_root_of_the_file_system_is_no_project(desk: Desk) -> None:
    assert desk.fault("index_codebase", path="/").id == "VAL_007"


def test_what_a_run_left_that_was_cut_off_can_be_deleted(desk: Desk, tmp_path: Path) -> None:
    root = grown(tmp_path / "app", {f"f{n}.go": f"package app\n\nfunc F{n}() {{}}\n" for n in range(40)})
    desk.index(root)
    with closing(sqlite3.connect(desk.database(root))) as database, database:
        database.execute("DELETE FROM files")
        database.execute("DELETE FROM roots")
        (before,) = database.execute("PRAGMA page_count").fetchone()
    desk.call("collection_delete", project_path=str(root))
    with closing(sqlite3.connect(desk.database(root))) as database:
        (after,) = database.execute("PRAGMA page_count").fetchone()
    assert after < before
    assert desk.fault("collection_delete", project_path=str(root)).id == "REC_001"


@pytest.mark.parametrize("query", ["*", "->", '""', "🙂"])
def test_a_query_without_words_finds_nothing(desk: Desk, tmp_path: Path, query: str) -> None:
    root = grown(tmp_path / "app", {"a.go": "package app\n\nfunc F() {}\n"})
    desk.index(root)
    assert desk.call("search_code", path=str(root), query=query)["results"] == []


def test_an_identifier_that_is_no_symbol_is_found_where_it_stands(desk: Desk, tmp_path: Path) -> None:
    root = grown(
        tmp_path / "app",
        {
            "a.go": "package app\n\nfunc ValidArgs() {}\n\nfunc ArgsFunction() {}\n\nfunc Valid() {}",
            "b.go": "package app\n\ntype Command struct {\n\tValidArgsFunction func()\n\tOther int\n}\n",
        },
    )
    desk.index(root)
    assert desk.found(root, "ValidArgsFunction")[0]["symbol"]["name"] == "Command"
