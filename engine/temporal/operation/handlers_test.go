package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"acescope/engine/ace"
)

type (
	ctxType = context.Context
	encoded = converter.EncodedValues
)

// serve runs one operation on the worker's side.
func serve(t *testing.T, h *Handlers, req Request) (Result, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet)
	env := suite.NewTestActivityEnvironment()
	h.Register(env)
	if req.OperationID == "" {
		req.OperationID, req.Type, req.Occurrence, req.RunKey = "op.x.-.1", Action, 1, "run"
	}
	if req.Parameters == nil {
		req.Parameters = json.RawMessage("null")
	}
	value, err := env.ExecuteActivity(req.Type.Activity(), req)
	if err != nil {
		return Result{}, err
	}
	var r Result
	if err := value.Get(&r); err != nil {
		t.Fatal(err)
	}
	return r, nil
}

// kindOf returns the type of an error and whether it is permanent.
func kindOf(err error) (string, bool) {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		return "", false
	}
	return app.Type(), app.NonRetryable()
}

// TestS2_16 checks that no error of a handler or of its dependencies is ignored.
func TestS2_16(t *testing.T) {
	big := strings.Repeat("x", MaxInline)
	wrapped := fmt.Errorf("in step 3: %w", AgentFailure(errors.New("no")))
	for name, c := range map[string]struct {
		do        Handler
		params    string
		put       func(context.Context, []byte, string) (ace.Ref, error)
		kind      string
		permanent bool
		said      string
	}{
		"error": {do: func(ctxType, json.RawMessage) (any, error) { return 1, errors.New("away") },
			kind: TypeInfrastructure, said: "away"},
		"agent": {do: func(ctxType, json.RawMessage) (any, error) {
			return nil, AgentFailure(errors.New("no"))
		}, kind: TypeAgent, permanent: true, said: "no"},
		"wrapped": {do: func(ctxType, json.RawMessage) (any, error) { return nil, wrapped },
			kind: TypeAgent, permanent: true, said: "in step 3: no"},
		"panic": {do: func(ctxType, json.RawMessage) (any, error) { panic("oh") }, kind: TypePanic,
			said: "panicked: oh"},
		"nil map": {do: func(ctxType, json.RawMessage) (any, error) {
			var m map[string]int
			m["a"]++
			return m, nil
		}, kind: TypePanic, said: "nil map"},
		"not JSON": {do: func(ctxType, json.RawMessage) (any, error) { return func() {}, nil },
			kind: TypeBadResult, permanent: true},
		"bad raw JSON": {do: func(ctxType, json.RawMessage) (any, error) {
			return json.RawMessage("{"), nil
		}, kind: TypeBadResult, permanent: true},
		"an error": {do: func(ctxType, json.RawMessage) (any, error) { return errors.New("x"), nil },
			kind: TypeBadResult, permanent: true, said: "does not survive JSON"},
		"parameters": {do: Typed(func(ctxType, struct{ N int }) (int, error) { return 1, nil }),
			params: `{"N":"x"}`, kind: TypeBadParameters, permanent: true, said: "do not fit"},
		"large, no store": {do: func(ctxType, json.RawMessage) (any, error) { return big, nil },
			kind: TypeBadResult, permanent: true, said: "no store"},
		"large, store full": {do: func(ctxType, json.RawMessage) (any, error) { return big, nil },
			put: func(ctxType, []byte, string) (ace.Ref, error) {
				return ace.Ref{}, errors.New("disk full")
			},
			kind: TypeInfrastructure, said: "disk full"},
		"no handler": {kind: TypeNoHandler, said: "no handler for action"},
		"long": {do: func(ctxType, json.RawMessage) (any, error) { return nil, errors.New(big) },
			kind: TypeInfrastructure, said: "…"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Handlers{Put: c.put}
			if c.do != nil {
				if err := h.Handle(Action, "", "", c.do); err != nil {
					t.Fatal(err)
				}
			}
			req := Request{}
			if c.params != "" {
				req.Parameters = json.RawMessage(c.params)
			}
			_, err := serve(t, h, req)
			if kind, permanent := kindOf(err); kind != c.kind || permanent != c.permanent ||
				!strings.Contains(fmt.Sprint(err), c.said) || len(fmt.Sprint(err)) > 2*maxMessage {
				t.Errorf("%s, permanent %t: %v", kind, permanent, err)
			}
		})
	}
}

func TestWiring(t *testing.T) {
	h := &Handlers{}
	one := Typed(func(ctxType, any) (any, error) { return nil, nil })
	for _, bad := range []error{h.Handle("magic", "", "", one), h.Handle(Action, "x", "", nil),
		errors.Join(h.Handle(Action, "x", "", one), h.Handle(Action, "x", "", one))} {
		if bad == nil {
			t.Error("it was taken")
		}
	}
}

func TestResults(t *testing.T) {
	var kept []byte
	h := &Handlers{Put: func(_ ctxType, content []byte, mediaType string) (ace.Ref, error) {
		kept = content
		return ace.Ref{SHA256: digest(content), Size: int64(len(content)), MediaType: mediaType}, nil
	}}
	var call Call
	small := h.Handle(Action, "", "", func(ctx ctxType, p json.RawMessage) (any, error) {
		call = CallOf(ctx)
		return p, nil
	})
	big := h.Handle(Action, "big", "", func(ctxType, json.RawMessage) (any, error) {
		return strings.Repeat("<", MaxInline), nil
	})
	if err := errors.Join(small, big); err != nil {
		t.Fatal(err)
	}
	r, err := serve(t, h, Request{Parameters: json.RawMessage(`{"b":1,"a":"<"}`)})
	if err != nil || string(r.Value) != `{"a":"<","b":1}` && string(r.Value) != `{"a":"\u003c","b":1}` ||
		r.Cached || r.ExecutedAt.IsZero() {
		t.Errorf("%s, %+v, %v", r.Value, r, err)
	}
	if call.Key != "default-test-workflow-id/run/op.x.-.1" || call.Attempt != 1 ||
		call.OperationID != "op.x.-.1" {
		t.Errorf("%+v", call)
	}
	r, err = serve(t, h, Request{OperationID: "op.big.-.1", Type: Action, Step: "big"})
	var ref ace.Ref
	var text string
	if err != nil || r.Value != nil || r.Decode(&ref) != nil || ref.Size != int64(len(kept)) ||
		len(kept) != MaxInline+2 || r.Decode(nil) != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if kind, _ := kindOf(r.Decode(&text)); kind != TypeBadResult {
		t.Errorf("a reference was read as text: %q", text)
	}
	if (CallOf(t.Context()) != Call{}) {
		t.Error("a call out of nothing")
	}
	Checkpoint(t.Context(), 1) // of no operation: nothing happens
}

func TestCheckpoint(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet)
	env := suite.NewTestActivityEnvironment()
	env.SetHeartbeatDetails(41)
	h := &Handlers{}
	if err := h.Handle(Action, "", "", func(ctx ctxType, _ json.RawMessage) (any, error) {
		var n int
		ok, err := LastCheckpoint(ctx, &n)
		Checkpoint(ctx, n+1)
		return map[string]any{"n": n, "ok": ok}, err
	}); err != nil {
		t.Fatal(err)
	}
	h.Register(env)
	value, err := env.ExecuteActivity(Action.Activity(), Request{OperationID: "op.x.-.1", Type: Action,
		Parameters: json.RawMessage("null")})
	if err != nil {
		t.Fatal(err)
	}
	var r Result
	if err := value.Get(&r); err != nil || string(r.Value) != `{"n":41,"ok":true}` {
		t.Errorf("%s, %v", r.Value, err)
	}
}

func TestCache(t *testing.T) {
	dir := t.TempDir()
	cache, err := OpenFileCache(dir, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	make := func(version string, large bool) *Handlers {
		h := &Handlers{Cache: cache, Put: func(_ ctxType, c []byte, _ string) (ace.Ref, error) {
			return ace.Ref{SHA256: digest(c), Size: int64(len(c))}, nil
		}}
		if err := h.Handle(Action, "", version, func(ctxType, json.RawMessage) (any, error) {
			calls++
			if large {
				return strings.Repeat("x", MaxInline), nil
			}
			if version == "nested" {
				return map[string]ace.Ref{"log": {SHA256: digest(nil), Size: 1}}, nil
			}
			return calls, nil
		}); err != nil {
			t.Fatal(err)
		}
		return h
	}
	ask := func(h *Handlers, cached bool, params string, wantCached bool, wantCalls int) {
		t.Helper()
		r, err := serve(t, h, Request{Cache: cached, Parameters: json.RawMessage(params)})
		if err != nil || r.Cached != wantCached || calls != wantCalls || (r.CacheKey != "") != cached ||
			r.ExecutedAt.IsZero() {
			t.Errorf("cached %t after %d calls, %+v, %v", r.Cached, calls, r, err)
		}
	}
	v1 := make("v1", false)
	ask(v1, true, `{"a":1,"b":2}`, false, 1)
	ask(v1, true, `{"b":2,"a":1}`, true, 1)
	ask(v1, false, `{"a":1,"b":2}`, false, 2) // not asked for
	ask(v1, true, `{"a":2}`, false, 3)
	ask(make("v2", false), true, `{"a":1,"b":2}`, false, 4)

	large := make("large", true)
	ask(large, true, `1`, false, 5)
	ask(large, true, `1`, true, 5)
	large.Have = func(ace.Ref) bool { return false }
	ask(large, true, `1`, false, 6) // its artifact is gone
	nested := make("nested", false)
	ask(nested, true, `1`, false, 7)
	ask(nested, true, `1`, true, 7)
	nested.Have = large.Have
	ask(nested, true, `1`, false, 8) // an artifact to which its value refers is gone

	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // the cache cannot work any more
		t.Fatal(err)
	}
	ask(v1, true, `{"a":1,"b":2}`, false, 9)
}

func entry(n int) Entry {
	key := digest([]byte(fmt.Sprint(n)))
	return Entry{Key: key, Type: Action, Result: Result{Value: json.RawMessage(fmt.Sprint(n)),
		ExecutedAt: time.Unix(0, 0).UTC()}}
}

func TestFileCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	c, err := OpenFileCache(dir, 20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	get := func(n int) (Entry, bool) {
		t.Helper()
		e, ok, err := c.Get(t.Context(), entry(n).Key)
		if err != nil {
			t.Fatal(err)
		}
		return e, ok
	}
	put := func(n int) {
		t.Helper()
		if err := c.Put(t.Context(), entry(n)); err != nil {
			t.Fatal(err)
		}
		old := time.Unix(int64(1000+n), 0)
		_ = os.Chtimes(filepath.Join(dir, entry(n).Key[:2], entry(n).Key+".json"), old, old)
	}
	for n := range 20 {
		put(n)
	}
	if e, ok := get(0); !ok || string(e.Value) != "0" { // and so it is the newest
		t.Fatalf("%+v, %t", e, ok)
	}
	put(20)
	if _, ok := get(0); !ok {
		t.Error("what was used last is gone")
	}
	if _, ok := get(1); ok || c.Removed() != 3 {
		t.Errorf("what was used least recently is there; %d are gone", c.Removed())
	}

	path := filepath.Join(dir, entry(20).Key[:2], entry(20).Key+".json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, bad := range []string{"", "{", `{"key":"other","result":1}`, `{"key":"` + entry(20).Key + `"}`} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := get(20); ok {
			t.Errorf("%q is an entry", bad)
		}
	}
	for _, key := range []string{"", "../../etc/passwd", strings.Repeat("g", 64)} {
		if _, _, err := c.Get(t.Context(), key); err == nil {
			t.Errorf("%q is a key", key)
		}
		if c.Put(t.Context(), Entry{Key: key}) == nil {
			t.Errorf("%q was put", key)
		}
	}

	left := filepath.Join(dir, "00", "new-1")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_ = os.Chtimes(left, time.Unix(1, 0), time.Unix(1, 0))
	small, err := OpenFileCache(dir, 100, 600) // of another process
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil || small.Removed() == 0 {
		t.Errorf("a leftover is there, or nothing was removed (%d)", small.Removed())
	}
	huge := entry(1)
	huge.Value, _ = json.Marshal(strings.Repeat("x", 1000))
	if err := small.Put(t.Context(), huge); err != nil {
		t.Error(err)
	}
	if _, ok, _ := small.Get(t.Context(), huge.Key); ok {
		t.Error("it is larger than the cache")
	}
	if _, err := OpenFileCache(dir, 0, 1); err == nil {
		t.Error("a cache without room")
	}
}

func TestFileCacheTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		c, err := OpenFileCache(dir, 8, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for n := range 60 {
				e := entry(n % 20)
				got, ok, err := c.Get(t.Context(), e.Key)
				if err != nil || ok && string(got.Value) != string(e.Value) {
					t.Errorf("%+v, %t, %v", got, ok, err)
				}
				if err := c.Put(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
