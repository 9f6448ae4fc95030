package engine

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestStoreChange checks that serving processes, also those of the embedded server, notice that a store is
// registered, that another one is, or none, and that they use the registered one when they start again.
func TestStoreChange(t *testing.T) {
	open := func(o Options) *Engine {
		t.Helper()
		o.Version = "test"
		e, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close(context.Background()) })
		return e
	}
	dir := t.TempDir()
	host := open(Options{DataDir: dir, Worker: true, Takeover: true, NoRunner: true})
	for _, v := range host.Node().Env() {
		t.Setenv(v.Name, v.Value)
	}
	member := open(Options{DataDir: t.TempDir(), Worker: true, Remote: &Remote{}})
	serving := []*Engine{host, member}
	notices := func(want string) {
		t.Helper()
		for _, e := range serving {
			err := e.worker.Load().store.check(t.Context())
			if (err == nil) != (want == "") || err != nil &&
				(!errors.Is(err, ErrStoreChanged) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v, expected %q", err, want)
			}
		}
	}
	register := func(url string) {
		t.Helper()
		if err := host.registry().register(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	first, second := "file://"+t.TempDir(), "file://"+t.TempDir()
	notices("")
	register(first)
	notices("uses " + first + " now")
	ticks := make(chan time.Time, 1)
	ticks <- time.Time{}
	member.worker.Load().store.run(t.Context(), ticks) // ends, because it noticed
	if err := <-StoreChanged(member); !errors.Is(err, ErrStoreChanged) {
		t.Error(err)
	}

	serving = []*Engine{open(Options{DataDir: dir, Worker: true, NoRunner: true}),
		open(Options{DataDir: t.TempDir(), Worker: true, Remote: &Remote{}})}
	notices("")
	ref, err := serving[0].Artifacts.PutBytes(t.Context(), []byte("made beside the embedded server"),
		"text/plain")
	if err != nil {
		t.Fatal(err)
	}
	if content, err := serving[1].Artifacts.Get(t.Context(), ref, 100); err != nil ||
		len(content) != int(ref.Size) {
		t.Errorf("an artifact of the other process: %q, %v", content, err)
	}
	terminate := func() {
		t.Helper()
		if err := host.Client.TerminateWorkflow(t.Context(), storeWorkflow, "", "test"); err != nil {
			t.Fatal(err)
		}
	}
	terminate()
	notices("no longer names the store " + first)
	if err := os.RemoveAll(strings.TrimPrefix(first, "file://") + "/artifacts"); err != nil {
		t.Fatal(err)
	}
	register(first)
	notices("registered " + first + " again")
	again := open(Options{DataDir: dir, Worker: true, NoRunner: true})
	if _, err := again.Artifacts.PutBytes(t.Context(), []byte("made beside the embedded server"),
		"text/plain"); err != nil {
		t.Fatal(err)
	}
	third := open(Options{DataDir: t.TempDir(), Remote: &Remote{}})
	if _, err := third.Artifacts.Get(t.Context(), ref, 100); err != nil {
		t.Errorf("an artifact that is put again after its store was emptied: %v", err)
	}
	terminate()
	register(second)
	notices("uses " + second + " now, and this process used " + first)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := serving[0].worker.Load().store.check(canceled); err != nil {
		t.Errorf("without an answer of the server: %v", err)
	}
	if StoreChanged(open(Options{DataDir: dir, NoRunner: true})) != nil {
		t.Error("a process that serves nothing waits for a change")
	}
}
