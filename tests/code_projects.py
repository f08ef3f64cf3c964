"""Small code bases for the tests, and a desk at which they are indexed and searched."""

import asyncio
import os
import subprocess
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pytest

from contextd.domain.callers import Caller
from contextd.domain.errors import Fault
from contextd.edge.call_pipeline import CallPipeline, pipeline_of
from contextd.services.closer_reading import CloserReader
from contextd.services.projects import project_at
from contextd.services.watching import Watching
from contextd.settings import RateLimit, Settings
from contextd.wiring import House, build, open_house

T = TypeVar("T")
HERE: Final = Caller(session="tests")


class _Asleep:
    async def run(self) -> None:
        return None


def quiet(data_dir: Path) -> House:
    """A house in which nothing works in the background: what a test sees, its own calls did."""
    house = build(Settings(data_dir=data_dir, rate_limit=RateLimit(on=False)))
    asleep = replace(house.code, watching=cast(Watching, _Asleep()), closer=cast(CloserReader, _Asleep()))
    return replace(house, code=asleep)


@dataclass
class Desk:
    """Calls of tools, one after the other, from tests that are not coroutines."""

    house: House
    pipeline: CallPipeline
    runner: asyncio.Runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def call(self, tool: str, /, caller: Caller = HERE, **arguments: Any) -> dict[str, Any]:
        return self.run(self.pipeline.call(tool, arguments, caller)).data

    def fault(self, tool: str, /, caller: Caller = HERE, **arguments: Any) -> Fault:
        with pytest.raises(Fault) as raised:
            self.call(tool, caller, **arguments)
        return raised.value

    def index(self, root: Path, **arguments: Any) -> dict[str, Any]:
        return self.call("index_codebase", path=str(root), **arguments)

    def search(self, root: Path, query: str, **arguments: Any) -> dict[str, Any]:
        """With room for every hit: what a budget leaves out has tests of its own."""
        return self.call(
            "search_code", path=str(root), query=query, **{"token_budget": 32_768, **arguments}
        )

    def found(self, root: Path, query: str, **arguments: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.search(root, query, **arguments)["results"]
        return results

    def paths(self, root: Path, query: str, **arguments: Any) -> set[str]:
        return {hit["file"]["path"] for hit in self.found(root, query, **{"limit": 100, **arguments})}

    def status(self, root: Path) -> dict[str, Any]:
        return self.call("get_status", path=str(root))

    def symbol(self, root: Path, symbol: str, **arguments: Any) -> dict[str, Any]:
        return self.call("symbol_lookup", path=str(root), symbol=symbol, **arguments)

    def database(self, root: Path) -> Path:
        return self.house.settings.data_dir / "code" / f"{project_at(str(root)).key}.db"


@contextmanager
def open_desk(data_dir: Path) -> Iterator[Desk]:
    with asyncio.Runner() as runner:
        house = quiet(data_dir)
        stack = AsyncExitStack()
        runner.run(stack.enter_async_context(open_house(house)))
        try:
            yield Desk(house, pipeline_of(house), runner)
        finally:
            runner.run(stack.aclose())


def grown(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "test",
        "GIT_AUTHOR_EMAIL": "test@localhost",
        "GIT_COMMITTER_NAME": "test",
        "GIT_COMMITTER_EMAIL": "test@localhost",
    }
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


GO_SHOP: Final[Mapping[str, str]] = {
    "go.mod": "module github.com/dev/shop\n\ngo 1.21\n",
    "README.md": "# Shop\n\nOrders are placed, paid and shipped.\n\n## Running\n\nRun the binary.\n",
    "cmd/shop/main.go": """package main

import (
	"fmt"

	bills "github.com/dev/shop/internal/billing"
	"github.com/dev/shop/internal/order"
)

func main() {
	service := order.NewCheckoutService(nil)
	fmt.Println(service, order.Total(nil), bills.Total(3))
}
""",
    "internal/order/order.go": """// Package order holds what customers buy.
package order

// Order is placed by a customer.
type Order struct {
	ID     string
	lines  []*OrderLine
	status string
}

// OrderLine is one article of an order.
type OrderLine struct {
	ID       string
	quantity int
}

// AddLine puts an article into the order.
func (o *Order) AddLine(line *OrderLine) {
	o.lines = append(o.lines, line)
	o.recount()
}

// Cancel ends the order before it is shipped.
func (o *Order) Cancel() {
	o.status = "cancelled"
}

func (o *Order) recount() int {
	return Total(o.lines)
}

// ChangeQuantity says how many are wanted.
func (l *OrderLine) ChangeQuantity(quantity int) {
	l.quantity = quantity
}

// Total counts the articles of all lines.
func Total(lines []*OrderLine) int {
	sum := 0
	for _, line := range lines {
		sum += line.quantity
	}
	return sum
}
""",
    "internal/order/money.go": """package order

// Money is an amount in a currency.
type Money struct {
	amount   int64
	currency string
}

// NewMoney makes an amount.
func NewMoney(amount int64, currency string) Money {
	return Money{amount, currency}
}

// Plus adds two amounts.
func (m Money) Plus(other Money) Money {
	return NewMoney(m.amount+other.amount, m.currency)
}

// Equals compares by value.
func (m Money) Equals(other Money) bool {
	return m == other
}
""",
    "internal/order/repository.go": """package order

// OrderRepository keeps orders.
type OrderRepository interface {
	FindByID(id string) (*Order, error)
	Save(order *Order) error
}
""",
    "internal/order/service.go": """package order

// CheckoutService turns carts into orders.
type CheckoutService struct {
	orders OrderRepository
}

// NewCheckoutService makes a service on a repository.
func NewCheckoutService(orders OrderRepository) *CheckoutService {
	return &CheckoutService{orders: orders}
}

// Checkout places an order and keeps it.
func (s *CheckoutService) Checkout(order *Order) error {
	order.Cancel()
	return s.orders.Save(order)
}
""",
    "internal/order/order_test.go": """package order

import "testing"

func TestTotal(t *testing.T) {
	if Total(nil) != 0 {
		t.Fatal("an empty order has articles")
	}
}
""",
    "internal/order/status_string.go": """// Code generated by "stringer"; DO NOT EDIT.

package order

func GeneratedStatusName(status int) string { return "status" }
""",
    "internal/storage/orders.go": """package storage

import (
	"database/sql"

	"github.com/dev/shop/internal/order"
)

// SQLOrders keeps orders in a database.
type SQLOrders struct {
	db *sql.DB
}

// FindByID reads one order.
func (s *SQLOrders) FindByID(id string) (*order.Order, error) {
	return nil, s.db.Ping()
}

// Save writes an order.
func (s *SQLOrders) Save(o *order.Order) error {
	return s.db.Ping()
}
""",
    "internal/billing/billing.go": """package billing

// ChargeCommand asks for a payment.
type ChargeCommand struct {
	OrderID string
	Cents   int
}

// InvoiceQuery asks for the invoices of a customer.
type InvoiceQuery struct {
	Customer string
}

// ChargeHandler carries out ChargeCommand.
type ChargeHandler struct {
	currency string
}

// Handle charges the customer's card.
func (h *ChargeHandler) Handle(command ChargeCommand) error {
	return nil
}

// Total of an invoice in cents.
func Total(cents int) int {
	return cents
}
""",
    "vendor/github.com/acme/tax/tax.go": """package tax

func VendoredTaxRate() int { return 19 }
""",
}
"""A little shop with one of everything: an aggregate, a value object, a repository, a service, commands, a
test, a generated file, a vendored package."""

BROKEN: Final = """package broken

// ParseHeader reads the head of a file.
func ParseHeader(text string) string {
	return text
}

func Unfinished( {
	return }}
"""


def go_shop(root: Path) -> Path:
    return grown(root, GO_SHOP)
