package sources

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/historyfile"
	"acescope/sources/histories"
	"acescope/sources/historytest"
	"acescope/sources/offline"
)

// clientOf returns a client on histories in files.
func clientOf(t *testing.T, all ...*historytest.Builder) client.Client {
	t.Helper()
	var files []offline.Source
	for i, b := range all {
		var text bytes.Buffer
		if err := historyfile.Write(&text, b.Events); err != nil {
			t.Fatal(err)
		}
		files = append(files, offline.Source{Name: fmt.Sprint(i, ".json"), Open: func() (io.ReadCloser,
			error) {
			return io.NopCloser(&text), nil
		}})
	}
	f := offline.New()
	if err := f.Load(t.Context(), files, nil); err != nil {
		t.Fatal(err)
	}
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The lineage of a run has its result, whatever its type; a result that cannot be read is unknown.
func TestLineageOfForeignResults(t *testing.T) {
	encoded := historytest.Payload("binary/encrypted", []byte("?"))
	null := &commonpb.Payloads{Payloads: []*commonpb.Payload{{
		Metadata: map[string][]byte{"encoding": []byte("binary/null")}}}}
	for i, c := range []struct {
		result *commonpb.Payloads
		want   string
	}{
		{historytest.JSON("It is 21 C"), "It is 21 C"}, {historytest.JSON([]string{"a", "b"}), `["a","b"]`},
		{historytest.JSON(7), "7"}, {historytest.JSON(true), "true"},
		{historytest.JSON(map[string]int{"answer": 42}), `{"answer":42}`},
		{historytest.JSON(map[string]string{"answer": "42"}), "42"},
		{historytest.JSON(map[string]int{"total": 3}), `{"total":3}`},
		{null, ""}, {nil, ""}, {encoded, "unknown"},
	} {
		b := historytest.New("Elsewhere", nil).Of("w", "r", "", "r").End(time.Second,
			&historypb.WorkflowExecutionCompletedEventAttributes{Result: c.result})
		tree, err := histories.ReadLineage(t.Context(), clientOf(t, b), "", "w", nil)
		if err != nil || len(tree.Nodes) != 1 {
			t.Errorf("%d: %v, %v", i, tree, err)
			continue
		}
		got := "unknown"
		if o := tree.Nodes[0].Outcome; o != nil {
			got = o.Answer
		}
		if got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

// The lineage of a chain has the result of each run, without waiting for the runs that continue it. What a
// long chain leaves out is counted.
func TestLineageOfAChain(t *testing.T) {
	const runs = 1203
	var all []*historytest.Builder
	for i := range runs {
		b := historytest.New("Elsewhere", nil).Of("w", fmt.Sprint("r-", i), "", "r-0")
		if i < runs-1 {
			b.End(time.Duration(i+1)*time.Second, &historypb.WorkflowExecutionCompletedEventAttributes{
				Result: historytest.JSON(i), NewExecutionRunId: fmt.Sprint("r-", i+1)})
		}
		all = append(all, b)
	}
	tree, err := histories.ReadLineage(t.Context(), clientOf(t, all[runs-4:]...), "", "w", nil)
	if err != nil || len(tree.Nodes) != 4 || tree.Dropped+tree.Unread != 0 {
		t.Fatalf("%v, %v", tree, err)
	}
	for _, n := range tree.Nodes {
		if last := n.Run.RunID == "r-1202"; last != (n.Outcome == nil) ||
			!last && "r-"+n.Outcome.Answer != n.Run.RunID {
			t.Errorf("run %s: %+v", n.Run.RunID, n.Outcome)
		}
	}
	tree, err = histories.ReadLineage(t.Context(), clientOf(t, all...), "", "w", nil)
	if err != nil || len(tree.Nodes) != 1000 || tree.Dropped != runs-1000 || tree.Unread != 800 {
		t.Fatalf("%d runs, %d dropped, %d unread, %v", len(tree.Nodes), tree.Dropped, tree.Unread, err)
	}
}
