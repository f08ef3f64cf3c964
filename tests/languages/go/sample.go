//go:build linux || darwin

// Package orders keeps the orders of a shop.
//
// It is the only writer of the ledger.
package orders

import (
	"context"
	"errors"
	"fmt"
	"sync"

	_ "embed"
	. "strings"

	"example.com/shop/go-clock/v2"
	ledger "example.com/shop/internal/ledger"
)

// MaxLines is the most lines that an order may have.
const MaxLines = 100

// The states of an order, as the ledger knows them.
const (
	// StateOpen is an order that may still change.
	StateOpen State = iota
	StatePaid
	stateLost, stateFound
)

var (
	// ErrNotFound is what an unknown order gives.
	ErrNotFound = errors.New("orders: not found")

	cache, misses = make(map[ID]*Order), 0
)

var _ Repository = (*Shelf[ID])(nil)

//go:embed schema.sql
var schema string

const (
	// Zone is that of the shop.
	Zone = "UTC"
)

type (
	// ID names an order.
	ID string

	State uint8

	// Handler is called after each change.
	Handler func(ctx context.Context, order *Order) error

	index = map[ID][]*Order
)

// Base is what every record has.
type Base struct {
	ID      ID
	Version int `json:"version"`
}

// Order is one purchase.
type Order struct {
	Base
	*sync.Mutex
	ledger.Entry

	lines []Line // in the order of their entry
	State State
}

type Line struct{ Name, Note string }

// Number is whatever can be added up.
type Number interface {
	~int | ~int64 | float64
}

// Repository stores orders.
type Repository interface {
	fmt.Stringer
	Find(ctx context.Context, id ID) (*Order, error)
	Save(context.Context, *Order) error
}

// Shelf keeps values of any kind by their key.
type Shelf[K comparable] struct {
	values map[K]any
	size   int
}

// NewShelf makes an empty shelf.
func NewShelf[K comparable](room int) *Shelf[K] {
	return &Shelf[K]{values: make(map[K]any, room)}
}

// Put adds a value; it says whether there was room.
func (s *Shelf[K]) Put(
	key K, // names the value
	value any,
) (ok bool, err error) {
	s.size++
	s.values[key] = value
	return true, nil
}

func (*Shelf[K]) String() string { return ToUpper("shelf") }

// Total adds up what each line says it is worth.
//
// Deprecated: use Sum.
func Total[N Number](lines []Line, worth func(Line) N) (total N) {
	type partial struct{ value N }
	for _, line := range lines {
		total += worth(line)
	}
	check := func(err error) { fmt.Println(err) }
	check(nil)
	return Sum[N](partial{total}.value)
}

/*
Find looks in the cache first.
*/
func (o Order) Find(ctx context.Context, id ID) (*Order, error) {
	if found, known := cache[id]; known {
		return found, nil
	}
	o.Mutex.Lock()
	defer o.Unlock()
	return nil, fmt.Errorf("%w: %s in %d", ErrNotFound, id, ledger.Page(ctx, clock.Now[Zoned](Zone)).Number())
}

func Sum[N Number](values ...N) N { var sum N; return sum }

func init() { go watch(NewShelf[string](3)) }

// watch is written in assembly.
func watch(shelf *Shelf[string])
