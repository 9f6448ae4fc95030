package histories

import (
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/temporal/history"
)

// MaxSealed bounds the unreadable payloads that are listed; the others are counted.
const MaxSealed = 50

// Sealed is a payload of a history that is not JSON: encrypted, compressed or of
// another kind. A codec server is needed to read it; Reason is why the one that is used
// could not, "" where none is.
type Sealed struct {
	Event    int64  `json:"event_id"`
	What     string `json:"what"` // input, signal NAME, result of ACTIVITY, result
	Encoding string `json:"encoding"`
	Size     int    `json:"size"` // bytes
	Reason   string `json:"codec_server,omitempty"`
}

type sealedFolder struct {
	list    []Sealed
	dropped int
	names   map[int64]string // of open activities, by scheduled event id
}

func (f *sealedFolder) apply(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		f.look(e, "input", e.GetWorkflowExecutionStartedEventAttributes().GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := e.GetWorkflowExecutionSignaledEventAttributes()
		f.look(e, "signal "+a.GetSignalName(), a.GetInput())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		if f.names == nil {
			f.names = map[int64]string{}
		}
		f.names[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		f.look(e, "result of "+f.names[a.GetScheduledEventId()], a.GetResult())
		delete(f.names, a.GetScheduledEventId())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		f.look(e, "result", e.GetWorkflowExecutionCompletedEventAttributes().GetResult())
	}
}

func (f *sealedFolder) look(e *historypb.HistoryEvent, what string, p *commonpb.Payloads) {
	for _, one := range p.GetPayloads() {
		switch enc := encodingOf(one); enc {
		case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON, converter.MetadataEncodingNil:
		default:
			if len(f.list) == MaxSealed {
				f.dropped++
				continue
			}
			f.list = append(f.list, Sealed{e.GetEventId(), what, enc, len(one.GetData()), history.CodecReason(one)})
		}
	}
}

// Why says why it cannot be read here.
func (x Sealed) Why() string { return whySealed(x.Reason) }

// whySealed is why a payload cannot be read, given what its codec server said.
func whySealed(reason string) string {
	if reason == "" {
		return "not readable here: no codec server is given (--codec-endpoint)"
	}
	return "not readable here, codec server: " + reason
}

func encodingOf(p *commonpb.Payload) string {
	if enc := string(p.GetMetadata()[converter.MetadataEncoding]); enc != "" {
		return enc
	}
	return "of unknown encoding"
}
