package feed

import "sync"

// Cell holds the newest value of a reader that always runs. Its methods may be called from any goroutine.
type Cell[Value any] struct {
	wake  func()
	mu    sync.Mutex
	value Value
}

// NewCell returns a cell with its first value. wake is called after each change; it must not block.
func NewCell[Value any](wake func(), first Value) *Cell[Value] {
	return &Cell[Value]{wake: wake, value: first}
}

// Value returns the newest value.
func (c *Cell[Value]) Value() Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

// Update changes the value. change must replace slices and maps, never write into them, because readers keep
// older values.
func (c *Cell[Value]) Update(change func(*Value)) {
	c.mu.Lock()
	change(&c.value)
	c.mu.Unlock()
	c.wake()
}

// Amend changes the value like Update, but wakes nothing, for changes that need not be drawn at once.
func (c *Cell[Value]) Amend(change func(*Value)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.value)
}

// Updater returns a function that publishes changed copies of a value, the first one of last, which may be
// nil. It may be called from several goroutines of one reader; change must replace slices and maps.
func Updater[Value any](last *Value, publish func(*Value)) func(change func(*Value)) {
	var mu sync.Mutex
	var value Value
	if last != nil {
		value = *last
	}
	return func(change func(*Value)) {
		mu.Lock()
		defer mu.Unlock()
		change(&value)
		next := value
		publish(&next)
	}
}
