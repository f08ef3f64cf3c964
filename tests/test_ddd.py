"""Domain-driven design in code: structure makes a pattern, a name only adds to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_projects import Desk, go_shop, grown, open_desk

PATTERNS = (
    "aggregate",
    "entity",
    "value_object",
    "repository",
    "service",
    "command",
    "query",
    "handler",
)
Verdicts = dict[str, dict[str, list[str]]]
"""Of each type its patterns, with their evidence."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("data")) as opened:
        yield opened


def verdicts(desk: Desk, root: Path) -> Verdicts:
    """By the filter of each pattern, which must find what carries the pattern and nothing else."""
    found: Verdicts = {}
    for pattern in PATTERNS:
        asked: dict[str, Any] = {"search_mode": "vector", "filters": {"ddd_patterns": [pattern]}}
        for hit in desk.found(root, "type", limit=100, **asked):
            shown = {each["pattern"]: each["evidence"] for each in hit["symbol"]["ddd_patterns"]}
            assert pattern in shown
            found.setdefault(hit["symbol"]["name"], {})[pattern] = shown[pattern]
    return found


def judged(desk: Desk, root: Path, go: str) -> Verdicts:
    grown(root, {"domain/types.go": f"package domain\n\n{go}"})
    desk.index(root)
    return verdicts(desk, root)


def test_every_pattern_of_the_shop_is_found_and_nothing_else(desk: Desk, tmp_path: Path) -> None:
    desk.index(go_shop(tmp_path))
    assert {name: set(found) for name, found in verdicts(desk, tmp_path).items()} == {
        "Order": {"aggregate", "entity"},
        "OrderLine": {"entity"},
        "Money": {"value_object"},
        "OrderRepository": {"repository"},
        "SQLOrders": {"repository"},
        "CheckoutService": {"service"},
        "ChargeCommand": {"command"},
        "InvoiceQuery": {"query"},
        "ChargeHandler": {"handler"},
    }


def test_each_verdict_says_by_what_it_was_reached(desk: Desk, tmp_path: Path) -> None:
    desk.index(go_shop(tmp_path))
    found = verdicts(desk, tmp_path)
    assert found["Order"]["entity"] == [
        "an identity: the field ID",
        "its methods change lines, status",
    ]
    assert found["Order"]["aggregate"][1] == "it holds entities: lines"
    assert found["SQLOrders"]["repository"] == [
        "its methods read (FindByID) and write (Save)",
        "it works on db",
    ]
    assert "an interface that reads (FindByID) and writes (Save)" in found["OrderRepository"]["repository"]
    assert "it is compared by value" in found["Money"]["value_object"]
    assert "it is given them by NewCheckoutService" in found["CheckoutService"]["service"]
    assert "its one method is Handle" in found["ChargeHandler"]["handler"]
    assert "its name ends in command" in found["ChargeCommand"]["command"]


def test_several_patterns_in_a_filter_are_any_of_them(desk: Desk, tmp_path: Path) -> None:
    desk.index(go_shop(tmp_path))
    found = desk.found(tmp_path, "order", filters={"ddd_patterns": ["aggregate", "value_object"]})
    assert {hit["symbol"]["name"] for hit in found} == {"Order", "Money"}


@pytest.mark.parametrize(
    "name",
    [
        "OrderRepository",
        "OrderService",
        "OrderAggregate",
        "OrderEntity",
        "OrderHandler",
        "OrderCommand",
        "OrderQuery",
    ],
)
def test_a_name_alone_makes_no_pattern(desk: Desk, tmp_path: Path, name: str) -> None:
    assert judged(desk, tmp_path, f"type {name} struct{{}}\n") == {}


@pytest.mark.parametrize(
    ("pattern", "go"),
    [
        ("entity", "type PersonEntity struct {\n\tID string\n}\n"),
        ("command", "type PlaceOrderCommand struct {\n\tCustomer string\n}\n"),
        ("query", "type OpenOrdersQuery struct {\n\tCustomer string\n}\n"),
        ("service", "type PriceService struct{}\n\nfunc (s *PriceService) Price() int { return 1 }\n"),
        (
            "handler",
            "type ShipHandler struct{}\n\nfunc (h *ShipHandler) Handle(c string) error { return nil }\n",
        ),
        ("repository", "type PriceStore interface {\n\tFindPrice(article string) int\n}\n"),
    ],
)
def test_a_name_and_a_weak_structure_together_do(desk: Desk, tmp_path: Path, pattern: str, go: str) -> None:
    found = judged(desk, tmp_path, go)
    assert [list(patterns) for patterns in found.values()] == [[pattern]]
    (evidence,) = (each[pattern] for each in found.values())
    assert len(evidence) == 2, "a pattern by its name alone"


@pytest.mark.parametrize(
    "go",
    [
        # An identity, and nothing about it changes.
        "type Person struct {\n\tID string\n\tName string\n}\n",
        # Methods, and no state, name or repository.
        "type Clock struct{}\n\nfunc (c *Clock) Now() int { return 1 }\n",
        # An interface that only reads.
        "type Reader interface {\n\tRead(p []byte) (int, error)\n}\n",
        # Plain data, no identity, no methods.
        "type Options struct {\n\tWidth int\n}\n",
    ],
)
def test_a_weak_structure_without_a_name_is_nothing(desk: Desk, tmp_path: Path, go: str) -> None:
    assert judged(desk, tmp_path, go) == {}


def test_an_identity_that_stays_while_the_rest_changes_is_an_entity(desk: Desk, tmp_path: Path) -> None:
    found = judged(
        desk,
        tmp_path,
        "type Customer struct {\n\tID   string\n\tname string\n}\n\n"
        "func (c *Customer) Rename(name string) {\n\tc.name = name\n}\n",
    )
    assert found == {"Customer": {"entity": ["an identity: the field ID", "its methods change name"]}}


def test_a_collection_that_is_guarded_makes_an_aggregate(desk: Desk, tmp_path: Path) -> None:
    found = judged(
        desk,
        tmp_path,
        "type Basket struct {\n\tID    string\n\titems []string\n}\n\n"
        "func (b *Basket) Put(item string) {\n\tb.items = append(b.items, item)\n}\n",
    )
    assert "it guards a collection: items" in found["Basket"]["aggregate"]


def test_what_can_be_changed_is_no_value(desk: Desk, tmp_path: Path) -> None:
    found = judged(
        desk,
        tmp_path,
        "type Point struct {\n\tx int\n}\n\nfunc NewPoint() Point { return Point{} }\n\n"
        "func (p Point) Equals(o Point) bool { return p == o }\n\n"
        "func (p *Point) Move(x int) {\n\tp.x = x\n}\n",
    )
    assert "Point" not in found


def test_a_method_in_another_file_of_the_package_counts(desk: Desk, tmp_path: Path) -> None:
    """And when it moves away the verdict follows, though the type's own file is as it was."""
    grown(
        tmp_path,
        {
            "shop/basket.go": "package shop\n\ntype Basket struct {\n\tID    string\n\towner string\n}\n",
            "shop/moves.go": "package shop\n\nfunc (b *Basket) GiveTo(o string) {\n\tb.owner = o\n}\n",
        },
    )
    desk.index(tmp_path)
    assert set(verdicts(desk, tmp_path)["Basket"]) == {"entity"}
    (tmp_path / "other").mkdir()
    (tmp_path / "shop/moves.go").rename(tmp_path / "other/moves.go")
    desk.index(tmp_path)
    assert verdicts(desk, tmp_path) == {}
    (tmp_path / "other/moves.go").rename(tmp_path / "shop/again.go")
    desk.index(tmp_path)
    assert set(verdicts(desk, tmp_path)["Basket"]) == {"entity"}


def test_a_file_that_moves_to_another_folder_keeps_its_patterns(desk: Desk, tmp_path: Path) -> None:
    grown(
        tmp_path,
        {
            "one/query.go": "package one\n\ntype OpenQuery struct {\n\tName string\n}\n",
            "main.go": "package main\n",
        },
    )
    desk.index(tmp_path)
    for folder in ("two", "an", "three"):
        (tmp_path / folder).mkdir()
        next(tmp_path.glob("*/query.go")).rename(tmp_path / folder / "query.go")
        desk.index(tmp_path)
        assert set(verdicts(desk, tmp_path)) == {"OpenQuery"}, folder


def test_the_same_file_in_two_folders_is_judged_in_each(desk: Desk, tmp_path: Path) -> None:
    """With the methods of its neighbours, which only one of the folders has."""
    account = "package bank\n\ntype Account struct {\n\tID      string\n\tbalance int\n}\n"
    grown(
        tmp_path,
        {
            "a/account.go": account,
            "b/account.go": account,
            "b/moves.go": "package bank\n\nfunc (a *Account) Pay(n int) {\n\ta.balance = n\n}\n",
        },
    )
    desk.index(tmp_path)
    filters = {"ddd_patterns": ["entity"], "file_pattern": "b/**"}
    assert [hit["file"]["path"] for hit in desk.found(tmp_path, "Account", filters=filters)] == [
        "b/account.go"
    ]
    assert desk.found(tmp_path, "Account", filters={**filters, "file_pattern": "a/**"}) == []


def test_classes_of_other_languages_are_judged_by_what_is_known_of_them(desk: Desk, tmp_path: Path) -> None:
    grown(
        tmp_path,
        {"shop.py": "class OrderService:\n    def place(self, order):\n        return order\n"},
    )
    desk.index(tmp_path)
    assert set(verdicts(desk, tmp_path)["OrderService"]) == {"service"}
