package process

import (
	"bytes"
	"context"
	"testing"
	"time"
)

func TestQuick(t *testing.T) {
	var out bytes.Buffer
	for _, sh := range []string{"echo hi", "sleep 100 & echo x", "setsid sleep 3 & echo y", "trap '' TERM; sleep 5", "kill -9 $$"} {
		out.Reset()
		ctx, c := context.WithTimeout(t.Context(), time.Second)
		b := time.Now()
		e := Run(ctx, Spec{Argv: []string{"sh", "-c", sh}, Env: Environ([]string{"PATH"}, nil, nil), Stdout: &out, Grace: 300 * time.Millisecond, DieWithParent: true, Drain: 500 * time.Millisecond})
		t.Log(sh, e, out.String(), time.Since(b))
		c()
	}
}
