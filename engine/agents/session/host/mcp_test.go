package host

import (
	"context"
	"encoding/json"
	"testing"
)

// TestCancelCall checks that a notification cancels the call that it names.
func TestCancelCall(t *testing.T) {
	called := make(chan struct{})
	s := newToolServer([]string{"read_file"},
		func(ctx context.Context, _, _ string, _ json.RawMessage) (string, bool) {
			close(called)
			<-ctx.Done()
			return "canceled", true
		})
	answered := make(chan string)
	go func() {
		answer, err := s.answer(t.Context(), json.RawMessage(
			`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read_file","arguments":{}}}`))
		if err != nil {
			t.Error(err)
		}
		answered <- string(answer)
	}()
	<-called
	for _, id := range []string{`8`, `null`, `7`} {
		_, err := s.answer(t.Context(), json.RawMessage(
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`))
		if err != nil {
			t.Error(err)
		}
	}
	if got := <-answered; got == "" {
		t.Error("no answer")
	}
}
