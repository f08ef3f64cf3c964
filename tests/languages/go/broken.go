package orders

// Open is whole.
func Open(name string) *Order {
	return find(name)
}

func Close(order *Order {
	order.close(
}

// Order stands after what is broken.
type Order struct {
	Name string
}

func (o *Order) close() error { return nil }
