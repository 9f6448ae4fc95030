package series

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Order says how to sort snapshots.
type Order string

// Orders. OrderAuto sorts by the numbers in the names if they tell the order, otherwise by the modification
// time.
const (
	OrderAuto  Order = "auto"
	OrderName  Order = "name"
	OrderTime  Order = "time"
	OrderGiven Order = "given"
)

// Orders lists all orders, the default first.
func Orders() []Order { return []Order{OrderAuto, OrderName, OrderTime, OrderGiven} }

// sortFiles sorts snapshots and returns what their order follows. It returns an error for [OrderName] if the
// names do not tell an order.
func sortFiles(files []snapshotFile, order Order) (by string, err error) {
	switch order {
	case OrderGiven:
		return "the order of the arguments", nil
	case OrderTime:
		return sortByTime(files), nil
	}
	keys := keysOf(files)
	if keys == nil && order == OrderName {
		return "", fmt.Errorf(
			"%w: the names of the %d files do not tell their order; use --order time or given",
			ErrInput, len(files))
	}
	if keys == nil {
		return sortByTime(files), nil
	}
	slices.SortStableFunc(files, func(a, b snapshotFile) int {
		return slices.Compare(keys[a.path], keys[b.path])
	})
	return "the numbers in the names", nil
}

func sortByTime(files []snapshotFile) string {
	slices.SortStableFunc(files, func(a, b snapshotFile) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name))
	})
	return "the modification times"
}

var (
	number = regexp.MustCompile(`\d+`)
	// stage is a position in training, as ace-agent/ace and others name it: epoch_2_step_50, step150,
	// window_3_final.
	stage = regexp.MustCompile(
		`(?i)(epoch|window|step|iteration|iter|round|snapshot|version)[_-]?(\d{1,12})`)
	initial = regexp.MustCompile(`(?i)(^|[^a-z])(initial|empty|start)([^a-z]|$)`)
	final   = regexp.MustCompile(`(?i)(^|[^a-z])final([^a-z]|$)`)
)

// first and last are positions before and after all numbers.
const (
	first = -1
	last  = 1 << 60
)

// keysOf returns the sort keys of files by path, nil if their names do not give each its own key.
func keysOf(files []snapshotFile) map[string][]int {
	shape := ""
	for i, f := range files {
		s := number.ReplaceAllString(f.name, "#")
		if i > 0 && s != shape {
			shape = ""
			break
		}
		shape = s
	}
	keys := make(map[string][]int, len(files))
	seen := map[string]bool{}
	for _, f := range files {
		key := stageKey(f.name)
		if key == nil && strings.Contains(shape, "#") {
			key = numbersIn(f.name)
		}
		if text := fmt.Sprint(key); key == nil || seen[text] {
			return nil
		} else {
			seen[text] = true
		}
		keys[f.path] = key
	}
	return keys
}

// stageKey returns the position that a name states: epoch or window, then step. It is nil without one.
func stageKey(name string) []int {
	matches := stage.FindAllStringSubmatch(name, -1)
	switch {
	case len(matches) == 0 && initial.MatchString(name):
		return []int{first, first}
	case len(matches) == 0 && final.MatchString(name):
		return []int{last, last}
	case len(matches) == 0:
		return nil
	}
	key := []int{1, last}
	for _, m := range matches {
		n, _ := strconv.Atoi(m[2])
		if word := strings.ToLower(m[1]); word == "epoch" || word == "window" {
			key[0] = n
		} else {
			key[1] = n
		}
	}
	return key
}

func numbersIn(name string) (list []int) {
	for _, s := range number.FindAllString(name, -1) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}
