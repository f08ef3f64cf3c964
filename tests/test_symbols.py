"""symbol_lookup: definitions, callers and callees, how sure each is, and what the index does not know."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_projects import BROKEN, HERE, Desk, go_shop, grown, open_desk
from contextd.adapters.index_locks import FileIndexLocks
from contextd.domain.errors import Invalid, NotIndexed
from contextd.services.projects import project_at

PYTHON = {
    "shop/__init__.py": "",
    "shop/cart.py": """from shop import prices
from shop.money import total as add_up


class Cart:
    def __init__(self):
        self.lines = []

    def add(self, line):
        self.lines.append(line)
        self.check()

    def check(self):
        return add_up(self.lines)


def empty_cart():
    return Cart()
""",
    "shop/money.py": """def total(lines):
    return round_up(sum(lines))


def round_up(value):
    return value
""",
    "shop/prices.py": "def total(article):\n    return 1\n",
    "shop/report.py": """from .cart import Cart, empty_cart
from . import money


def report():
    cart = empty_cart()
    cart.add(money.total([1]))
    unknown_helper()
    return cart
""",
}
TYPESCRIPT = {
    "src/cart.ts": """export class Cart {
  add(line: string): void {
    this.check();
  }

  check(): boolean {
    return isOpen();
  }
}

export function isOpen(): boolean {
  return true;
}
""",
    "src/page.ts": """import { Cart, isOpen as open } from "./cart";

export function render(): Cart {
  const cart = new Cart();
  if (open()) {
    cart.add("one");
  }
  return cart;
}
""",
    "src/other.ts": "export function isOpen(): boolean {\n  return false;\n}\n",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("data")) as opened:
        yield opened


@pytest.fixture(scope="module")
def shop(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = go_shop(tmp_path_factory.mktemp("go"))
    desk.index(root)
    return root


@pytest.fixture(scope="module")
def python(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = grown(tmp_path_factory.mktemp("python"), PYTHON)
    desk.index(root)
    return root


@pytest.fixture(scope="module")
def typescript(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = grown(tmp_path_factory.mktemp("typescript"), TYPESCRIPT)
    desk.index(root)
    return root


def places(found: dict[str, Any]) -> list[str]:
    return [f"{each['file']}:{each['line']}" for each in found["definitions"]]


def callers(found: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["resolution"] for each in found["callers"]}


def callees(found: dict[str, Any]) -> dict[str, tuple[list[str], str]]:
    return {
        each["name"]: ([place["file"] for place in each["definitions"]], each["resolution"])
        for each in found["callees"]
    }


# --- Go ------------------------------------------------------------------------------------------


def test_a_function_is_found_with_all_that_is_known_of_it(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "NewMoney")
    assert found["symbol"] == "NewMoney"
    assert found["definitions"] == [
        {
            "name": "NewMoney",
            "kind": "function",
            "container": "",
            "package": "order",
            "signature": "func NewMoney(amount int64, currency string) Money",
            "file": "internal/order/money.go",
            "line": 10,
            "end_line": 12,
        }
    ]
    assert found["callers"] == [
        {
            "name": "Money.Plus",
            "file": "internal/order/money.go",
            "line": 15,
            "lines": [16],
            "test": False,
            "resolution": "exact",
        }
    ]
    assert found["references"] == [
        {
            "file": "internal/order/money.go",
            "line": 16,
            "kind": "call",
            "qualifier": "",
            "within": "Money.Plus",
            "resolution": "exact",
        }
    ]
    assert found["resolution"] == "exact"
    assert found["totals"] == {"definitions": 1, "references": 1, "callers": 1, "callees": 0}


def test_the_same_name_in_two_packages_is_ambiguous_until_it_is_qualified(desk: Desk, shop: Path) -> None:
    both = desk.symbol(shop, "Total")
    assert places(both) == ["internal/billing/billing.go:25", "internal/order/order.go:38"]
    assert both["resolution"] == "ambiguous"
    ours = desk.symbol(shop, "order.Total")
    assert places(ours) == ["internal/order/order.go:38"]
    assert callers(ours) == {"main": "exact", "Order.recount": "exact", "TestTotal": "exact"}
    assert ours["resolution"] == "exact"
    theirs = desk.symbol(shop, "billing.Total")
    assert callers(theirs) == {"main": "exact"}, "through an import by another name"
    assert [use["qualifier"] for use in theirs["references"]] == ["bills"]


def test_a_test_among_the_callers_is_marked(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "order.Total", relation="callers")
    assert {each["name"]: each["test"] for each in found["callers"]} == {
        "main": False,
        "Order.recount": False,
        "TestTotal": True,
    }


def test_a_method_is_not_a_function_of_the_same_name(desk: Desk, tmp_path: Path) -> None:
    root = grown(
        tmp_path,
        {
            "close.go": "package x\n\ntype Door struct{}\n\nfunc (d *Door) Close() {}\n\n"
            "func Close() {}\n\nfunc use(d *Door) {\n\tClose()\n}\n\n"
            "func (d *Door) Slam() {\n\td.Close()\n}\n"
        },
    )
    desk.index(root)
    method = desk.symbol(root, "Door.Close")
    assert (places(method), callers(method)) == (["close.go:5"], {"Door.Slam": "exact"})
    every = desk.symbol(root, "Close")
    assert every["resolution"] == "ambiguous"
    assert callers(every) == {"use": "exact", "Door.Slam": "exact"}


def test_a_method_on_some_variable_is_known_by_name_only(desk: Desk, shop: Path) -> None:
    """`order.Cancel()` is a call on a parameter: its type is not looked up."""
    found = desk.symbol(shop, "Order.Cancel")
    assert callers(found) == {"CheckoutService.Checkout": "by_name"}
    assert found["resolution"] == "by_name"


def test_two_types_with_a_method_of_one_name_are_ambiguous(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "Save")
    assert found["resolution"] in ("by_name", "ambiguous")
    assert callers(found) == {"CheckoutService.Checkout": "by_name"}


def test_callees_say_where_they_are_defined(desk: Desk, shop: Path) -> None:
    found = callees(desk.symbol(shop, "main", relation="callees"))
    assert found["NewCheckoutService"] == (["internal/order/service.go"], "exact")
    totals = [each for each in desk.symbol(shop, "main")["callees"] if each["name"] == "Total"]
    assert {each["qualifier"]: each["definitions"][0]["file"] for each in totals} == {
        "order": "internal/order/order.go",
        "bills": "internal/billing/billing.go",
    }
    assert found["Println"][0] == [], "of the standard library, which is not indexed"


def test_a_type_is_referred_to(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "OrderRepository")
    assert found["definitions"][0]["kind"] == "interface"
    assert {use["kind"] for use in found["references"]} == {"type"}
    assert {use["within"] for use in found["references"]} == {"CheckoutService", "NewCheckoutService"}
    assert found["callers"] == []


@pytest.mark.parametrize(
    ("relation", "filled"),
    [
        ("definition", set()),
        ("references", {"references"}),
        ("callers", {"callers"}),
        ("callees", {"callees"}),
        ("all", {"references", "callers", "callees"}),
    ],
)
def test_a_relation_is_answered_alone(desk: Desk, shop: Path, relation: str, filled: set[str]) -> None:
    found = desk.symbol(shop, "Order.recount", relation=relation)
    assert places(found) == ["internal/order/order.go:28"]
    lists = ("references", "callers", "callees")
    assert {name for name in lists if found[name]} == filled


def test_the_limit_is_for_each_list_and_totals_tell_the_rest(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "Total", limit=1)
    assert [len(found[name]) for name in ("definitions", "references", "callers")] == [1, 1, 1]
    assert found["totals"] == {"definitions": 2, "references": 4, "callers": 3, "callees": 0}


def test_a_name_that_is_used_and_not_defined_is_by_name(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "Println")
    assert (found["definitions"], found["resolution"]) == ([], "by_name")
    assert callers(found) == {"main": "by_name"}


def test_a_name_that_nothing_knows(desk: Desk, shop: Path) -> None:
    found = desk.symbol(shop, "NoSuchThing")
    assert found["totals"] == {"definitions": 0, "references": 0, "callers": 0, "callees": 0}
    assert found["resolution"] == "by_name"


def test_case_counts(desk: Desk, shop: Path) -> None:
    assert desk.symbol(shop, "newmoney")["definitions"] == []


# --- Python --------------------------------------------------------------------------------------


def test_an_import_by_another_name_leads_to_its_definition(desk: Desk, python: Path) -> None:
    found = desk.symbol(python, "money.total")
    assert places(found) == ["shop/money.py:1"]
    assert callers(found) == {"Cart.check": "exact", "report": "exact"}
    assert desk.symbol(python, "prices.total")["callers"] == []


def test_self_is_the_object_itself(desk: Desk, python: Path) -> None:
    found = desk.symbol(python, "Cart.check")
    assert callers(found) == {"Cart.add": "exact"}
    assert callees(found) == {"add_up": (["shop/money.py"], "exact")}


def test_a_method_on_a_variable_of_python_is_by_name(desk: Desk, python: Path) -> None:
    assert callers(desk.symbol(python, "Cart.add")) == {"report": "by_name"}


def test_a_class_that_is_called_is_used(desk: Desk, python: Path) -> None:
    assert callers(desk.symbol(python, "Cart")) == {"empty_cart": "exact"}


def test_callees_of_a_function_of_several_modules(desk: Desk, python: Path) -> None:
    found = callees(desk.symbol(python, "report", relation="callees"))
    assert found["empty_cart"] == (["shop/cart.py"], "exact")
    assert found["total"] == (["shop/money.py"], "exact")
    assert found["add"] == (["shop/cart.py"], "by_name")
    assert found["unknown_helper"][0] == []


# --- TypeScript ----------------------------------------------------------------------------------


def test_a_renamed_import_of_typescript_leads_to_its_definition(desk: Desk, typescript: Path) -> None:
    found = desk.symbol(typescript, "cart.isOpen")
    assert places(found) == ["src/cart.ts:11"]
    assert callers(found) == {"Cart.check": "exact", "render": "exact"}
    assert desk.symbol(typescript, "other.isOpen")["callers"] == []


def test_this_is_the_object_itself(desk: Desk, typescript: Path) -> None:
    assert callers(desk.symbol(typescript, "Cart.check")) == {"Cart.add": "exact"}
    assert callers(desk.symbol(typescript, "Cart.add")) == {"render": "by_name"}


# --- what the index does not hold -----------------------------------------------------------------


def test_all_of_a_small_tree_is_covered(desk: Desk, python: Path) -> None:
    assert desk.symbol(python, "Cart")["coverage"] == {
        "files_indexed": 5,
        "complete": True,
        "up_to_date": True,
        "not_indexed": {},
        "folders_not_indexed": {},
        "files_partly_read": [],
        "note": "every source file of the tree is indexed; calls and uses of types are followed,"
        " functions passed as values are not",
    }


def test_what_is_left_out_is_said_before_anybody_believes_in_no_callers(desk: Desk, tmp_path: Path) -> None:
    root = go_shop(tmp_path)
    grown(
        root, {"internal/broken/parser.go": BROKEN, ".gitignore": "local.go\n", "local.go": "package x\n"}
    )
    desk.index(root, include_tests=False)
    coverage = desk.symbol(root, "GeneratedStatusName")["coverage"]
    assert coverage["complete"] is False
    assert coverage["not_indexed"] == {"generated": 1, "ignored": 1, "tests": 1, "vendor": 1}
    assert coverage["folders_not_indexed"] == {"vendor": "vendor"}
    assert coverage["files_partly_read"] == ["internal/broken/parser.go"]
    for word in ("generated", "tests", "vendor", "not read whole"):
        assert word in coverage["note"]
    assert "TestTotal" not in callers(desk.symbol(root, "Total"))


def test_an_edit_without_a_run_is_seen(desk: Desk, tmp_path: Path) -> None:
    root = go_shop(tmp_path)
    desk.index(root)
    grown(
        root,
        {"cmd/tool/main.go": "package main\n\nfunc caller() {\n\tcallee()\n}\n\nfunc callee() {}\n"},
    )
    (root / "internal/billing/billing.go").unlink()
    found = desk.symbol(root, "callee")
    assert callers(found) == {"caller": "exact"}
    assert found["coverage"]["up_to_date"] is True
    assert desk.symbol(root, "ChargeCommand")["definitions"] == []


def test_a_lookup_while_somebody_indexes_says_that_it_may_be_old(desk: Desk, tmp_path: Path) -> None:
    root = grown(tmp_path, {"a.go": "package a\n\nfunc Old() {}\n"})
    desk.index(root)
    grown(root, {"b.go": "package a\n\nfunc useOld() {\n\tOld()\n}\n"})
    locks = FileIndexLocks(desk.house.settings.data_dir)

    async def look_up() -> dict[str, Any]:
        async with locks.hold(project_at(str(root)).key, background=False, patience_s=0.0):
            asked = {"path": str(root), "symbol": "Old"}
            return (await desk.pipeline.call("symbol_lookup", asked, HERE)).data

    found = desk.run(look_up())
    assert found["callers"] == []
    assert (found["coverage"]["complete"], found["coverage"]["up_to_date"]) == (False, False)
    assert "changes since the last run" in found["coverage"]["note"]
    assert callers(desk.symbol(root, "Old")) == {"useOld": "exact"}


def test_a_lookup_before_any_run_is_refused(desk: Desk, tmp_path: Path) -> None:
    go_shop(tmp_path)
    assert isinstance(desk.fault("symbol_lookup", path=str(tmp_path), symbol="Total"), NotIndexed)


@pytest.mark.parametrize(
    "wrong",
    [
        {"symbol": ""},
        {"symbol": "x" * 201},
        {"symbol": 7},
        {"relation": "cousins"},
        {"limit": 0},
        {"limit": 101},
        {"path": "relative"},
    ],
)
def test_wrong_arguments_are_named(desk: Desk, shop: Path, wrong: dict[str, Any]) -> None:
    fault = desk.fault("symbol_lookup", **{"path": str(shop), "symbol": "Total", **wrong})
    assert isinstance(fault, Invalid)
    assert fault.details["param"] == next(iter(wrong))


def test_a_name_that_a_package_hands_on_is_found_by_name(desk: Desk, tmp_path: Path) -> None:
    root = grown(
        tmp_path / "lib",
        {
            "shop/__init__.py": "from .cart import total\n",
            "shop/cart.py": "def total():\n    return 1\n",
            "use.py": "import os\nimport shop\nfrom shop import total\n\n\n"
            "def one():\n    return total()\n\n\n"
            "def two():\n    return shop.total()\n\n\ndef three():\n    return os.total()\n",
        },
    )
    desk.index(root)
    found = desk.symbol(root, "total", relation="callers")
    assert {caller["name"]: caller["resolution"] for caller in found["callers"]} == {
        "one": "by_name",
        "two": "by_name",
    }
    assert found["resolution"] == "by_name"


def test_an_unknown_name_says_so(desk: Desk, shop: Path) -> None:
    assert desk.symbol(shop, "nosuchthing")["message"].startswith("no symbol of this name is defined")
