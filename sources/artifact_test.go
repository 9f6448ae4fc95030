package sources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"acescope/engine/ace"
	"acescope/sources/cluster"
	"acescope/sources/histories"
)

func TestArtifactsAreReadOnDemand(t *testing.T) {
	s := NewStore()
	reads := 0
	deps := cluster.Deps{Artifact: func(ref ace.Ref, limit int64) ([]byte, error) {
		reads++
		if ref.SHA256 == "gone" {
			return nil, errors.New("artifact not found: gone")
		}
		return []byte("content of " + ref.SHA256), nil
	}}
	for _, sha := range []string{"a", "gone", "a"} {
		s.OpenArtifact(ace.Ref{SHA256: sha})
	}
	s.OpenArtifact(ace.Ref{SHA256: "huge", Size: histories.ArtifactLimit + 1})
	s.readArtifacts(context.Background(), deps)
	got := s.Snapshot().Artifacts
	if len(got.List) != 3 || string(got.Find("a").Data) != "content of a" || got.Find("gone").Err == "" || reads != 3 {
		t.Errorf("%+v after %d reads", got.List, reads)
	}
	if huge := got.Find("huge"); !strings.Contains(huge.Err, "more than") {
		t.Errorf("%+v", huge)
	}
	for i := range 3 * histories.MaxArtifacts {
		s.OpenArtifact(ace.Ref{SHA256: strings.Repeat("x", i+1)})
		s.readArtifacts(context.Background(), deps)
	}
	if n := len(s.Snapshot().Artifacts.List); n != histories.MaxArtifacts {
		t.Errorf("%d are kept", n)
	}
	var none *histories.Artifacts
	if none.Find("a") != nil {
		t.Error("something was found in nothing")
	}
	if a := histories.ReadArtifact(cluster.Deps{}, ace.Ref{}); a.Err == "" {
		t.Error("no store gives no error")
	}
}
