package codec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"acescope/engine/store/bucket"
	"acescope/engine/temporal/codec"
	"acescope/engine/temporal/codec/codectest"
)

// TestStore keeps objects in a store with codec=true, through a codec server as the SDK makes it: with its
// key, with another one, without credentials, with a server that decodes nothing, and without a server.
// ACESCOPE_TEST_STORE adds another store, such as
// s3://BUCKET?endpoint=http://127.0.0.1:7070&use_path_style=true&disable_https=true.
func TestStore(t *testing.T) {
	stores := map[string]string{"directory": "file://" + t.TempDir()}
	if url := os.Getenv("ACESCOPE_TEST_STORE"); url != "" {
		stores["environment"] = fmt.Sprintf("%s&prefix=codec-%d/", url, os.Getpid())
	}
	const auth = "Bearer right"
	web := codectest.New(codectest.Cipher{Key: "right"}, auth)
	defer web.Close()
	other := codectest.New(codectest.Cipher{Key: "wrong"}, "")
	defer other.Close()
	mute := codectest.New(codectest.Cipher{}, "")
	defer mute.Close()
	mute.Fail(func(w http.ResponseWriter, r *http.Request) { // returns what it gets
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body.Bytes())
	})
	gone := codectest.New(codectest.Cipher{Key: "right"}, "")
	gone.Close()
	for name, url := range stores {
		t.Run(name, func(t *testing.T) {
			open := func(address, auth string) bucket.Bucket {
				t.Helper()
				c, err := codec.New(codec.Config{Endpoint: address, Auth: auth})
				if err != nil {
					t.Fatal(err)
				}
				mark := "?"
				if strings.Contains(url, "?") {
					mark = "&"
				}
				b, err := bucket.Make(t.Context(), url+mark+"codec=true", c)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Close() })
				return b
			}
			right := open(web.URL, auth)
			content := strings.Repeat("the prompt of a run; ", 100_000) // two pieces
			if err := right.Create(t.Context(), "x", strings.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			if got, err := bucket.Get(t.Context(), right, "x", 1<<30); err != nil || string(got) != content {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			plain, err := bucket.Open(t.Context(), url, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer plain.Close()
			if raw, err := bucket.Get(t.Context(), plain, "x", 1<<30); err != nil ||
				bytes.Contains(raw, []byte("prompt")) {
				t.Errorf("%.80q, %v", raw, err)
			}
			for what, c := range map[string]struct {
				b      bucket.Bucket
				reason string
			}{
				"wrong key":      {open(other.URL, ""), `unknown key id "right"`},
				"no credentials": {open(web.URL, ""), "403"},
				"decodes none":   {open(mute.URL, ""), "did not decode"},
				"unreachable":    {open(gone.URL, ""), "connection refused"},
			} {
				_, err := bucket.Get(t.Context(), c.b, "x", 1<<30)
				if !errors.Is(err, bucket.ErrUnavailable) || !strings.Contains(err.Error(), c.reason) {
					t.Errorf("%s: read: %v", what, err)
				}
				if what == "wrong key" || what == "decodes none" {
					continue
				}
				err = c.b.Create(t.Context(), "y", strings.NewReader("y"))
				if !errors.Is(err, bucket.ErrUnavailable) {
					t.Errorf("%s: write: %v", what, err)
				}
			}
			if _, err := plain.Open(t.Context(), "y"); !errors.Is(err, bucket.ErrNotFound) {
				t.Errorf("something was written without a codec: %v", err)
			}
			if err := right.Delete(context.WithoutCancel(t.Context()), "x"); err != nil {
				t.Error(err)
			}
		})
	}
}
