package batch_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"acescope/engine/ace"
	"acescope/engine/agents/observe/batch"
)

// TestDelayLimitsSignals checks that hours of steady events stay well below the limit of signals.
func TestDelayLimitsSignals(t *testing.T) {
	sent, spent := 0, time.Duration(0)
	for ; spent < 2*time.Hour; sent++ {
		spent += batch.Delay(sent)
	}
	if sent > 5000 {
		t.Errorf("%d signals in two hours", sent)
	}
}

// TestOrderAndBounds checks that all items arrive in order, in batches within the bounds.
func TestOrderAndBounds(t *testing.T) {
	for _, pace := range []time.Duration{0, 5 * time.Millisecond} {
		var mu sync.Mutex
		var sizes, got []int
		q := batch.New(batch.Rule[int]{Bytes: func(n int) int { return n % 7 * 40 << 10 }, MinInterval: pace,
			SameBatch: func(a, b int) bool { return a/500 == b/500 }}, func(items []int) {
			mu.Lock()
			defer mu.Unlock()
			sizes, got = append(sizes, len(items)), append(got, items...)
			bytes := 0
			for _, n := range items {
				bytes += n % 7 * 40 << 10
			}
			if bytes > batch.MaxBytes || len(items) > batch.Max || items[0]/500 != items[len(items)-1]/500 {
				t.Errorf("a batch of %d items, %d bytes, %d to %d", len(items), bytes, items[0],
					items[len(items)-1])
			}
		})
		var want []int
		for n := range 2000 {
			want = append(want, n)
			q.Add(n)
		}
		q.Close(false)
		q.Add(7)
		if !slices.Equal(got, want) {
			t.Errorf("%d of %d arrived, or not in order: batches %v", len(got), len(want), sizes)
		}
	}
}

func TestCloseDrops(t *testing.T) {
	q := batch.New(batch.Rule[int]{Bytes: func(int) int { return 1 }},
		func(items []int) { t.Errorf("%v was sent", items) })
	q.Add(1)
	q.Close(true)
	if n := batch.EventBytes(ace.ToolEvent{Args: []byte("12"), Result: []byte("3")}); n != 3 {
		t.Errorf("%d bytes", n)
	}
}

func TestOversizedItem(t *testing.T) {
	var got []int
	q := batch.New(batch.Rule[int]{Bytes: func(int) int { return 3 << 20 }},
		func(items []int) { got = append(got, len(items)) })
	q.Add(1, 2)
	q.Close(false)
	if !slices.Equal(got, []int{1, 1}) {
		t.Errorf("batches of %v", got)
	}
}

// TestWaitingIsBounded checks that a queue whose sender hangs drops and counts later items.
func TestWaitingIsBounded(t *testing.T) {
	hang, sending := make(chan struct{}), make(chan struct{})
	q := batch.New(batch.Rule[int]{Bytes: func(n int) int { return n }, MaxWaiting: 100}, func([]int) {
		sending <- struct{}{}
		<-hang
	})
	q.Add(60, 40)
	<-sending
	q.Add(60, 30, 20, 10)
	if n := q.Dropped(); n != 1 { // 60+30+20 are too many, 60+30+10 are not
		t.Errorf("%d dropped", n)
	}
	close(hang)
	q.Close(true)
}
