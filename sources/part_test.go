package sources

import (
	"context"
	"testing"
)

// A part is read while somebody looks, anew when it is wanted otherwise, and not at all
// when nobody does.
func TestPartIsReadWhileLookedAt(t *testing.T) {
	s := NewStore()
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watchPart(ctx, PartLogs, func(ctx context.Context) {
			began <- struct{}{}
			<-ctx.Done()
			ended <- struct{}{}
		})
	}()
	s.Look(PartLogs, true)
	<-began
	s.again(PartLogs)
	<-ended
	<-began
	s.Look(PartLogs, true) // no change
	s.Look(PartLogs, false)
	<-ended
	s.Look(PartLogs, true)
	<-began
	cancel()
	<-ended
	<-done
}
