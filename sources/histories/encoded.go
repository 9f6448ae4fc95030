package histories

import (
	"strconv"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"acescope/engine/temporal/history"
)

// MaxEncoded bounds the listed payloads; others are counted.
const MaxEncoded = 50

// EncodedPayload is a payload of an unknown encoding, such as an encrypted or compressed one, which needs a
// codec server, or one that is stored outside the history. Reason is why the codec server in use could not
// decode it, "" without a codec server.
type EncodedPayload struct {
	Event    int64  `json:"event_id"`
	What     string `json:"what"` // input, signal NAME, result of ACTIVITY, result
	Encoding string `json:"encoding"`
	Size     int    `json:"size"` // bytes
	Reason   string `json:"codec_server,omitempty"`
	Storage  string `json:"storage_driver,omitempty"` // the driver of the external storage that holds it
}

type encodedFolder struct {
	list    []EncodedPayload
	dropped int
	names   map[int64]string // of open activities, by scheduled event id
}

func (f *encodedFolder) apply(e *historypb.HistoryEvent) {
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

func (f *encodedFolder) look(e *historypb.HistoryEvent, what string, p *commonpb.Payloads) {
	for _, one := range p.GetPayloads() {
		x := EncodedPayload{Event: e.GetEventId(), What: what, Encoding: history.EncodingOf(one),
			Size:   len(one.GetData()),
			Reason: history.CodecReason(one)}
		driver, stored := history.StoredBy(one)
		if !stored && !history.Encoded(one) {
			continue
		}
		if stored {
			x.Encoding, x.Storage, x.Size = "a storage reference", driver, 0
			for _, part := range one.GetExternalPayloads() {
				x.Size += int(part.GetSizeBytes())
			}
		}
		if len(f.list) == MaxEncoded {
			f.dropped++
			continue
		}
		f.list = append(f.list, x)
	}
}

// Why returns why the payload cannot be read.
func (x EncodedPayload) Why() string {
	if x.Storage != "" {
		return "stored outside the history by the storage driver " + strconv.Quote(x.Storage)
	}
	return reasonUnreadable(x.Reason)
}

// reasonUnreadable returns why a payload cannot be read, given the codec server's reason.
func reasonUnreadable(reason string) string {
	if reason == "" {
		return "not readable without a codec server; set --codec-endpoint"
	}
	return "not readable; codec server: " + reason
}
