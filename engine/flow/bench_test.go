package flow

import (
	"fmt"
	"strings"
	"testing"
)

// largeFlow returns a flow of n steps, of which half have two expressions.
func largeFlow(n int) Source {
	var b strings.Builder
	b.WriteString("flow: large\ninputs: {name: {type: string}}\nsteps:\n  - {id: s0, run: [echo, first]}\n")
	for i := 1; i < n; i++ {
		if i%2 == 0 {
			fmt.Fprintf(&b, "  - {id: s%d, run: [echo, plain, text]}\n", i)
			continue
		}
		fmt.Fprintf(&b, "  - id: s%d\n    if: steps.s%d.exit_code == 0\n    run: [echo, \"${{ inputs.name + steps.s%d.stdout }}\"]\n", i, i-1, i-1)
	}
	return source(b.String())
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1000} {
		src := largeFlow(n)
		b.Run(fmt.Sprint(n, " steps"), func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse(src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
