package history

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
)

// TestEncodings reads a payload of each encoding that the SDKs write, and of unknown ones.
func TestEncodings(t *testing.T) {
	long := strings.Repeat("é", 60)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte(long)))
	for _, c := range []struct {
		encoding, message, data string
		encoded                 bool
		value                   string // JSON, "" if it is not readable
		unread                  string // prefix
	}{
		{"binary/null", "", "", false, "null", ""},
		{"json/plain", "", `{"a":1}`, false, `{"a":1}`, ""},
		{"json/plain", "", `null`, false, `null`, ""},
		{"json/protobuf", "temporal.api.common.v1.Payload", `{}`, false, `{}`, ""},
		{"binary/plain", "", "bytes & more", false,
			`{"bytes":12,"encoding":"binary/plain","text":"bytes & more"}`,
			"binary/plain, not JSON"},
		{"binary/plain", "", "\x00\xff", false, `{"bytes":2,"encoding":"binary/plain","hex":"00ff"}`,
			"binary/plain, not JSON"},
		{"binary/plain", "", "a\x1b[31m", false, `{"bytes":6,"encoding":"binary/plain","hex":"611b5b33316d"}`,
			"binary/plain, not JSON"},
		{"binary/plain", "", "", false, `{"bytes":0,"encoding":"binary/plain","text":""}`,
			"binary/plain, not JSON"},
		{"binary/plain", "", long, false, `{"bytes":120,"encoding":"binary/plain",` +
			`"sha256":"` + digest + `","text":"` + strings.Repeat("é", 40) + `…"}`, "binary/plain, not JSON"},
		{"binary/protobuf", "temporal.api.common.v1.Payload", "\x0a\x01", false,
			`{"bytes":2,"encoding":"binary/protobuf","hex":"0a01"}`, "binary/protobuf, not JSON"},
		{"json/external-storage-reference", "", `{"driver_name":"s3"}`, false, "",
			"stored outside the history"},
		{"json/protobuf", "temporal.api.sdk.v1.ExternalStorageReference", `{"driverName":"s3"}`, false, "",
			"stored outside the history"},
		{"", "", "x", true, "", "encoded (of unknown encoding) (it needs a codec server"},
		{"binary/encrypted", "", "\x01", true, "", "encoded (binary/encrypted) (it needs a codec server"},
		{"binary/zlib", "", "\x01", true, "", "encoded (binary/zlib) (it needs a codec server"},
		{"json/plain", "", "\x01", true, "", "encoded (json/plain) (it needs a codec server"},
	} {
		p := &commonpb.Payload{Metadata: map[string][]byte{"messageType": []byte(c.message)},
			Data: []byte(c.data)}
		if c.encoding != "" {
			p.Metadata["encoding"] = []byte(c.encoding)
		}
		value, readable := Values(PayloadList(p))
		if string(value) != c.value || readable != (c.value != "") || Encoded(p) != c.encoded {
			t.Errorf("%s %q: encoded %v, %s", c.encoding, c.data, Encoded(p), value)
		}
		if got := Unread(PayloadList(p)); !strings.HasPrefix(got, c.unread) ||
			(got == "") != (c.unread == "") {
			t.Errorf("%s %q: unread %q", c.encoding, c.data, got)
		}
		e := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
				Input: PayloadList(p)}}}
		_, stored := StoredBy(p)
		if got := FirstEncoded([]*historypb.HistoryEvent{e}); (got != "") != (c.encoded || stored) {
			t.Errorf("%s %q: first encoded %q", c.encoding, c.data, got)
		}
	}
}
