package history

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"acescope/engine/ace"
	"acescope/engine/internal/plainjson"
)

// JSON returns the data of the first payload, or nil if it is missing or not JSON.
func JSON(p *commonpb.Payloads) []byte {
	if len(p.GetPayloads()) == 0 {
		return nil
	}
	return PayloadJSON(p.GetPayloads()[0])
}

// PayloadJSON returns the data of a payload, or nil if it is not JSON or stored outside the history.
func PayloadJSON(p *commonpb.Payload) []byte {
	switch EncodingOf(p) {
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		if _, ok := StoredBy(p); ok {
			return nil
		}
		return p.GetData()
	}
	return nil
}

// encodingStored is the encoding of a reference to external storage that early versions of the SDKs wrote.
const encodingStored = "json/external-storage-reference"

var typeStored = string((*sdkpb.ExternalStorageReference)(nil).ProtoReflect().Descriptor().FullName())

// StoredBy returns the name of the storage driver that holds the content of a payload, and false if the
// payload holds its content itself. The external storage of the SDKs replaces large payloads by such
// references.
func StoredBy(p *commonpb.Payload) (driver string, ok bool) {
	var ref struct {
		Driver string `json:"driverName"`
		Early  string `json:"driver_name"`
	}
	switch EncodingOf(p) {
	case encodingStored:
	case converter.MetadataEncodingProtoJSON:
		if string(p.GetMetadata()[converter.MetadataMessageType]) != typeStored {
			return "", false
		}
	default:
		return "", false
	}
	_ = json.Unmarshal(p.GetData(), &ref) // an unreadable reference has no name
	return cmp.Or(ref.Driver, ref.Early, "unknown"), true
}

// Encoded reports whether a payload looks encoded by a codec: its encoding is not one of Temporal's own, or
// its encoding is JSON but its data is not.
func Encoded(p *commonpb.Payload) bool {
	switch EncodingOf(p) {
	case converter.MetadataEncodingNil, converter.MetadataEncodingBinary, converter.MetadataEncodingProto,
		encodingStored:
		return false
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		return !json.Valid(p.GetData())
	}
	return true
}

// maxPreview bounds the bytes of a preview.
const maxPreview = 80

// Describe returns what is shown of a payload that is not JSON: its encoding and its size; of bytes, their
// beginning as text, or in hexadecimal if they are not printable UTF-8; and a digest unless all are shown.
func Describe(p *commonpb.Payload) map[string]any {
	data := p.GetData()
	about := map[string]any{"encoding": EncodingOf(p), "bytes": len(data)}
	control := func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }
	preview := ace.Cut(string(data[:min(len(data), maxPreview+1)]), maxPreview)
	bytes := strings.HasPrefix(EncodingOf(p), "binary/") && !Encoded(p)
	switch {
	case bytes && utf8.Valid(data) && !strings.ContainsFunc(preview, control):
		about["text"] = preview
	case bytes:
		about["hex"] = hex.EncodeToString(data[:min(len(data), maxPreview)])
	}
	if !bytes || len(data) > maxPreview {
		about["sha256"] = fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return about
}

// EncodingOf returns the encoding of a payload, or "of unknown encoding".
func EncodingOf(p *commonpb.Payload) string {
	return cmp.Or(string(p.GetMetadata()[converter.MetadataEncoding]), "of unknown encoding")
}

// Unread returns why the first payload cannot be read, or "" if it is missing or can be read.
func Unread(p *commonpb.Payloads) string {
	if len(p.GetPayloads()) == 0 {
		return ""
	}
	first := p.GetPayloads()[0]
	driver, stored := StoredBy(first)
	switch _, readable := Values(PayloadList(first)); {
	case stored:
		return storedBy(driver)
	case !readable:
		return "encoded (" + EncodingOf(first) + ")" + DecodeHint(first)
	case PayloadJSON(first) == nil && EncodingOf(first) != converter.MetadataEncodingNil:
		return EncodingOf(first) + ", not JSON"
	}
	return ""
}

func storedBy(driver string) string {
	return "stored outside the history by the storage driver " + strconv.Quote(driver)
}

// Values returns the JSON of one payload, or a list of several. Of a payload that holds bytes, the JSON is
// that of [Describe]. It returns false if one of them is encoded or stored outside the history.
func Values(p *commonpb.Payloads) (json.RawMessage, bool) {
	var list []json.RawMessage
	for _, payload := range p.GetPayloads() {
		data := PayloadJSON(payload)
		switch EncodingOf(payload) {
		case converter.MetadataEncodingNil:
			data = []byte("null")
		case converter.MetadataEncodingBinary, converter.MetadataEncodingProto:
			data, _ = plainjson.Marshal(Describe(payload)) // of texts and numbers
		}
		if !json.Valid(data) {
			return nil, false
		}
		list = append(list, data)
	}
	switch len(list) {
	case 0:
		return nil, true
	case 1:
		return list[0], true
	}
	data, err := json.Marshal(list)
	return data, err == nil
}

// MetaCodec is the metadata key under which a payload that a codec server could not decode
// carries the one-line reason. acescope sets it on payloads it reads and never sends it.
const MetaCodec = "acescope-codec-server"

// CodecReason returns why a codec server could not decode a payload, or "" if none tried.
func CodecReason(p *commonpb.Payload) string { return string(p.GetMetadata()[MetaCodec]) }

// DecodeHint returns, in parentheses, why the codec server did not decode a payload, or that it needs one.
func DecodeHint(p *commonpb.Payload) string {
	if reason := CodecReason(p); reason != "" {
		return " (codec server: " + reason + ")"
	}
	return " (it needs a codec server: --codec-endpoint)"
}

// FoldedPayloads returns the payloads of an event that the fold reads.
func FoldedPayloads(e *historypb.HistoryEvent) []*commonpb.Payload {
	switch a := e.GetAttributes().(type) {
	case *historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes:
		return a.WorkflowExecutionStartedEventAttributes.GetInput().GetPayloads()
	case *historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes:
		return a.WorkflowExecutionSignaledEventAttributes.GetInput().GetPayloads()
	case *historypb.HistoryEvent_ActivityTaskCompletedEventAttributes:
		return a.ActivityTaskCompletedEventAttributes.GetResult().GetPayloads()
	case *historypb.HistoryEvent_ChildWorkflowExecutionCompletedEventAttributes:
		return a.ChildWorkflowExecutionCompletedEventAttributes.GetResult().GetPayloads()
	case *historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes:
		return a.WorkflowExecutionCompletedEventAttributes.GetResult().GetPayloads()
	}
	return nil
}

// FirstEncoded describes the first payload that a workflow could not read, or returns "".
func FirstEncoded(events []*historypb.HistoryEvent) string {
	for _, e := range events {
		for _, p := range FoldedPayloads(e) {
			if why := Unreadable(p); why != "" {
				return fmt.Sprintf("a payload of event %d is %s", e.GetEventId(), why)
			}
		}
	}
	return ""
}

// Unreadable returns why a workflow could not read a payload, or "".
func Unreadable(p *commonpb.Payload) string {
	driver, stored := StoredBy(p)
	switch {
	case stored:
		return storedBy(driver)
	case Encoded(p):
		return "encoded (" + EncodingOf(p) + ")" + DecodeHint(p)
	}
	return ""
}

// FailureOf converts a failure that a history recorded.
func FailureOf(f *failurepb.Failure) ace.Failure {
	return FailureFrom(temporal.GetDefaultFailureConverter().FailureToError(f))
}

// FailureFrom converts an error that a workflow receives from an activity or a child. It
// removes the wrapping that the SDK adds only in the workflow, so that both sides agree.
func FailureFrom(err error) ace.Failure {
	if activity, ok := errors.AsType[*temporal.ActivityError](err); ok {
		err = errors.Unwrap(activity)
	}
	if child, ok := errors.AsType[*temporal.ChildWorkflowExecutionError](err); ok {
		err = errors.Unwrap(child)
	}
	if err == nil {
		return ace.Failure{Kind: ace.Failed, Message: "unknown failure"}
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		text := timeout.Message()
		if cause := errors.Unwrap(timeout); cause != nil {
			text += "; last failure: " + FailureFrom(cause).Message
		}
		return ace.Failure{Kind: ace.TimedOut, Type: timeout.TimeoutType().String(), Message: text}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		f := ace.Failure{Kind: ace.Failed, Type: app.Type(), Message: app.Message(), Calls: callsOf(app)}
		var task ace.Failure
		if app.Details(&task) == nil {
			f.Usage = task.Usage
		}
		return f
	}
	if _, ok := errors.AsType[*temporal.CanceledError](err); ok {
		return Canceled()
	}
	return ace.Failure{Kind: ace.Failed, Message: err.Error()}
}

// callsOf returns the record of model calls that is the last of one or two details of an error, or nil.
func callsOf(err *temporal.ApplicationError) *ace.CallLog {
	var log ace.CallLog
	if err.Details(&log) != nil || log.MediaType != ace.CallsMediaType {
		var answer ace.Ref
		if err.Details(&answer, &log) != nil || log.MediaType != ace.CallsMediaType {
			return nil
		}
	}
	return &log
}

// Canceled returns the failure of a canceled activity or child workflow.
func Canceled() ace.Failure { return ace.Failure{Kind: ace.Canceled, Message: "cancelled"} }
