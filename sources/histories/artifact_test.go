package histories_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

func TestArtifactsAreReadOnDemand(t *testing.T) {
	reads := 0
	link := cluster.NewLink()
	link.Artifact = func(_ context.Context, ref ace.Ref, _ int64) ([]byte, error) {
		reads++
		if ref.SHA256 == "gone" {
			return nil, errors.New("artifact not found: gone")
		}
		return []byte("content of " + ref.SHA256), nil
	}
	f := histories.NewArtifactFeed(link)
	for _, sha := range []string{"a", "gone", "a"} {
		f.Open(ace.Ref{SHA256: sha})
	}
	f.Open(ace.Ref{SHA256: "huge", Size: histories.ArtifactLimit + 1})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	defer wg.Wait()
	defer stop()
	// until waits until the newest artifact is one, and returns them all.
	until := func(newest string) *histories.Artifacts {
		t.Helper()
		for {
			if v := f.Value(); v != nil && v.List[len(v.List)-1].Ref.SHA256 == newest {
				return v
			}
			select {
			case <-link.Changed():
			case <-t.Context().Done():
				t.Fatal("never read: " + newest)
			}
		}
	}
	f.Look(true)
	got := until("huge")
	if len(got.List) != 3 || string(got.Find("a").Data) != "content of a" || got.Find("gone").Err == "" ||
		reads != 3 {
		t.Errorf("%+v after %d reads", got.List, reads)
	}
	if huge := got.Find("huge"); !strings.Contains(huge.Err, "more than") {
		t.Errorf("%+v", huge)
	}
	for i := range 3 * histories.MaxArtifacts {
		sha := strings.Repeat("x", i+1)
		f.Open(ace.Ref{SHA256: sha})
		got = until(sha)
	}
	if n := len(got.List); n != histories.MaxArtifacts {
		t.Errorf("%d are kept", n)
	}
	var none *histories.Artifacts
	if none.Find("a") != nil {
		t.Error("something was found in nothing")
	}
	if a := histories.ReadArtifact(t.Context(), cluster.Deps{}, ace.Ref{}); a.Err == "" {
		t.Error("no store gives no error")
	}
}
