package historyfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"google.golang.org/protobuf/proto"
)

// recorded returns a history file as the server wrote it.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../../workflows/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSpace(data)
}

// bare decodes a history with Temporal's own reader.
func bare(t testing.TB, data []byte) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	if err := (temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}).Unmarshal(data,
		h); err != nil {
		t.Fatal(err)
	}
	return h
}

func same(t *testing.T, got History, want *historypb.History) {
	t.Helper()
	if len(got.Unread) > 0 {
		t.Errorf("unread: %+v", got.Unread)
	}
	if !proto.Equal(&historypb.History{Events: got.Events}, want) {
		t.Errorf("%d events differ from the %d of Temporal's reader", len(got.Events), len(want.Events))
	}
}

func packed(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

// Every supported file shape is read as Temporal's own reader reads each history.
func TestReadShapes(t *testing.T) {
	one, two := recorded(t, "right"), recorded(t, "retried")
	list := func(data []byte) []byte {
		return data[bytes.IndexByte(data, '[') : bytes.LastIndexByte(data, ']')+1]
	}
	loose := strings.TrimSuffix(strings.TrimPrefix(string(list(one)), "["), "]")
	for name, c := range map[string]struct {
		data []byte
		want [][]byte
	}{
		"object":          {one, [][]byte{one}},
		"list of events":  {list(one), [][]byte{one}},
		"gzip":            {packed(one), [][]byte{one}},
		"byte order mark": {append([]byte("\xef\xbb\xbf"), one...), [][]byte{one}},
		"response": {[]byte(`{"nextPageToken":"","history":` + string(one) +
			`,"archived":false}`), [][]byte{one}},
		"one after another": {bytes.Join([][]byte{one, two}, []byte("\n")), [][]byte{one, two}},
		"list of histories": {[]byte("[" + string(one) + ",\n" + string(two) + "]"),
			[][]byte{one, two}},
		"lists of events": {[]byte("[" + string(list(one)) + "," + string(list(two)) + "]"),
			[][]byte{one, two}},
		"one event after another": {[]byte(loose), [][]byte{one}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(bytes.NewReader(c.data))
			if err != nil || len(got) != len(c.want) {
				t.Fatalf("%d histories, error %v", len(got), err)
			}
			for i := range got {
				same(t, got[i], bare(t, c.want[i]))
			}
		})
	}
}

// A truncated file gives the events before the break and its position.
func TestReadTruncated(t *testing.T) {
	data := recorded(t, "right")
	want := bare(t, data)
	before := 0
	for at := 1; at < len(data)-1; at += 37 {
		got, err := Read(bytes.NewReader(data[:at]))
		var where *Error
		if !errors.As(err, &where) || where.Offset > int64(at) {
			t.Fatalf("cut at %d: %v", at, err)
		}
		n := 0
		if len(got) > 0 {
			n = len(got[0].Events)
		}
		if n < before {
			t.Fatalf("cut at %d: %d events, but %d with a shorter file", at, n, before)
		}
		if before = n; n > 0 && !proto.Equal(got[0].Events[n-1], want.Events[n-1]) {
			t.Fatalf("cut at %d: event %d differs", at, n)
		}
	}
	if before < len(want.Events)-1 {
		t.Errorf("read only %d of %d events", before, len(want.Events))
	}
	cut := packed(data)
	if _, err := Read(bytes.NewReader(cut[:len(cut)-20])); err == nil ||
		!strings.Contains(err.Error(), "compressed file is truncated") {
		t.Errorf("cut gzip: %v", err)
	}
}

func TestReadBadInput(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no history found",
		"  \n":                           "no history found",
		"hello":                          "byte 0: a history begins with",
		"42":                             "byte 0: a history begins with",
		`{"a":1}`:                        `byte 0: an object without "events"`,
		`{"events":3}`:                   `byte 10: "events" must be a list`,
		`{"events":[{"eventId":"1"} x]}`: "byte 27, event 2 of history 1: a history begins with",
		strings.Repeat("[", 40):          "nested too deeply",
		"\x1f\x8bnot gzip":               "gzip",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// With any single byte changed, Read neither invents events nor drops any without an error.
func TestReadDamaged(t *testing.T) {
	data := recorded(t, "right")
	want := bare(t, data)
	for at := 0; at < len(data); at += 61 {
		for _, b := range []byte{0, '"', '{', ']', '\\', 0xff} {
			bad := bytes.Clone(data)
			bad[at] = b
			got, err := Read(bytes.NewReader(bad))
			var where *Error
			if err != nil && !errors.As(err, &where) {
				t.Fatalf("%q at %d: %v", b, at, err)
			}
			n := 0
			for _, h := range got {
				n += len(h.Events)
			}
			if n > len(want.Events) {
				t.Fatalf("%q at %d: %d events", b, at, n)
			}
			if err == nil && n < len(want.Events) && bad[at] != data[at] && len(got) == 1 &&
				got[0].Events[n-1].GetEventId() == int64(n) {
				t.Errorf("%q at %d: %d events of %d, and no error", b, at, n, len(want.Events))
			}
		}
	}
}

// A decompression bomb is rejected early, deep nesting makes one event unread, and a large
// event is accepted.
func TestReadLimits(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	blanks := bytes.Repeat([]byte{' '}, 1<<20)
	for range 200 {
		z.Write(blanks)
	}
	z.Close()
	if _, err := Read(&bomb); err == nil || !strings.Contains(err.Error(), "decompresses to more than") {
		t.Errorf("bomb: %v", err)
	}
	deep := `{"events":[{"eventId":"1","x":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}]}`
	if got, err := Read(strings.NewReader(deep)); err != nil || len(got) != 1 || len(got[0].Unread) != 1 {
		t.Errorf("deep: %d histories, %v", len(got), err)
	}
	large := `{"events":[{"eventId":"1","eventType":"EVENT_TYPE_MARKER_RECORDED","markerRecordedEventAttributes":{"markerName":"` + strings.Repeat("x", 10<<20) + `"}}]}`
	if got, err := Read(strings.NewReader(large)); err != nil || len(got[0].Unread) != 0 ||
		len(got[0].Events[0].GetMarkerRecordedEventAttributes().GetMarkerName()) != 10<<20 {
		t.Errorf("large: %v", err)
	}
}

// Events of newer servers, or with invalid fields, keep their ID, time and type.
func TestUnreadEvents(t *testing.T) {
	text := `{"events":[
		{"eventId":"1","eventTime":"2026-05-04T12:00:00Z","eventType":"EVENT_TYPE_WORKFLOW_EXECUTION_STARTED","workflowExecutionStartedEventAttributes":{"workflowType":{"name":"W"},"fromTheFuture":{"a":[1,2]}},"newField":7},
		{"eventId":"2","eventTime":"2026-05-04T12:00:01.5Z","eventType":"EVENT_TYPE_FROM_THE_FUTURE","someAttributes":{}},
		{"eventId":"3","eventTime":"yesterday","eventType":"EVENT_TYPE_TIMER_STARTED"}]}`
	got, err := Read(strings.NewReader(text))
	if err != nil || len(got) != 1 || len(got[0].Events) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	e := got[0].Events
	if e[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowType().GetName() != "W" {
		t.Errorf("first: %v", e[0])
	}
	if e[1].EventId != 2 || e[1].GetEventTime().AsTime().Nanosecond() != 5e8 || e[2].EventId != 3 ||
		e[2].EventType != enumspb.EVENT_TYPE_UNSPECIFIED {
		t.Errorf("second: %v, third: %v", e[1], e[2])
	}
	u := got[0].Unread
	if len(u) != 2 || u[0].Index != 1 || u[0].Type != "EVENT_TYPE_FROM_THE_FUTURE" ||
		u[1].Type != "EVENT_TYPE_TIMER_STARTED" || u[1].Reason == "" {
		t.Errorf("unread: %+v", u)
	}
}

// Both this reader and Temporal's read back what Write wrote.
func TestWrite(t *testing.T) {
	want := bare(t, recorded(t, "failed"))
	var b bytes.Buffer
	if err := Write(&b, want.Events); err != nil {
		t.Fatal(err)
	}
	if got := bare(t, b.Bytes()); !proto.Equal(got, want) {
		t.Error("Temporal's reader reads a different history")
	}
	got, err := Read(&b)
	if err != nil || len(got) != 1 {
		t.Fatal(err)
	}
	same(t, got[0], want)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"events":[{"eventId":"1","eventType":"EVENT_TYPE_TIMER_STARTED"},{"eventId":2}]}`))
	f.Add([]byte(`[{"event_id":1},[],{"history":{"events":[]}}]`))
	f.Add([]byte(`{"events":[{"eventId":"\\\""`))
	f.Add(packed([]byte(`{"events":[]}`)))
	data := recorded(f, "right")
	f.Add(data)
	f.Add(data[:5000])
	f.Add([]byte(`{"events":[{"eventId":"2"},{"eventId":"2"},{"eventId":"1"},{"eventId":"-7"},{"eventId":"99999999999999999999"}]}`))
	f.Add([]byte(`{"events":[{"eventId":"1","x":[[[[{"a":"\\"}]]]]}]}{"events":[]}[]`))
	f.Add([]byte("{\"events\":[{\"eventType\":3,\"eventTime\":\"x\"}\x1e]}\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Read(bytes.NewReader(data))
		for _, h := range got {
			for i, e := range h.Events {
				if e == nil {
					t.Fatalf("event %d of %d is nil (%v)", i, len(h.Events), err)
				}
			}
		}
	})
}

// long returns a file of n events, as the server writes them.
func long(tb testing.TB, n int) []byte {
	events := bare(tb, recorded(tb, "live")).Events
	h := &historypb.History{}
	for i := range n {
		e := proto.Clone(events[i%len(events)]).(*historypb.HistoryEvent)
		e.EventId = int64(i + 1)
		h.Events = append(h.Events, e)
	}
	var b bytes.Buffer
	if err := Write(&b, h.Events); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1000, 50_000} {
		data := long(b, n)
		b.Run(fmt.Sprintf("ours-%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if h, err := Read(bytes.NewReader(data)); err != nil || len(h[0].Events) != n {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("bare-%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				bare(b, data)
			}
		})
	}
}
