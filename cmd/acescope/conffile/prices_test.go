package conffile

import (
	"reflect"
	"strings"
	"testing"
)

func TestPrices(t *testing.T) {
	f, wrong := Parse("c.toml", []byte(`
[[prices]]
model = "house-1"
input = 2
output = 8.5
cache_read = 0.1

[[prices]]
input = 1

[[prices]]
model = "x"
output = -1

[[prices]]
model = "y"
colour = "red"

[[prices]]
model = "z"
cache_write_1h = "much"
`), func(string) bool { return false })
	want := []Price{{Model: "house-1", Input: 2, Output: 8.5, CacheRead: 0.1}, {Model: "y"}}
	if !reflect.DeepEqual(f.Prices, want) {
		t.Errorf("%+v", f.Prices)
	}
	all := strings.Join(wrong, "\n")
	for _, say := range []string{"c.toml:8: price: it needs a model", "c.toml:11: price: output must be nought or more", `no "colour"`, "cache_write_1h is no number"} {
		if !strings.Contains(all, say) {
			t.Errorf("%q is not said in\n%s", say, all)
		}
	}
	if _, wrong := Parse("c.toml", []byte("prices = 3"), func(string) bool { return false }); len(wrong) != 1 {
		t.Error(wrong)
	}
}
