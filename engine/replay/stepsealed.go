package replay

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"acescope/engine/history"
)

// payloadsOf lists the payloads of an event that the fold reads.
func payloadsOf(e *historypb.HistoryEvent) []*commonpb.Payload {
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

func payloadBytes(e *historypb.HistoryEvent) (n int) {
	for _, p := range payloadsOf(e) {
		n += len(p.GetData())
	}
	return n
}

// sealedIn lists how the payloads of an event are encoded that cannot be read, and why
// their codec server could not where one was asked.
func sealedIn(e *historypb.HistoryEvent) (encodings []string) {
	for _, p := range payloadsOf(e) {
		encoding := string(p.GetMetadata()[converter.MetadataEncoding])
		if encoding == converter.MetadataEncodingNil || encoding == converter.MetadataEncodingJSON ||
			encoding == converter.MetadataEncodingProtoJSON {
			continue
		}
		if encoding == "" {
			encoding = "of unknown encoding"
		}
		encodings = append(encodings, encoding+needs(p))
	}
	return encodings
}

// needs says what would make an encoded payload readable, in brackets.
func needs(p *commonpb.Payload) string {
	if reason := history.CodecReason(p); reason != "" {
		return " (codec server: " + reason + ")"
	}
	return " (it needs a codec server: --codec-endpoint)"
}

// locked says that a history has payloads which its workflow could not read, "" if it has
// none.
func locked(events []*historypb.HistoryEvent) string {
	for _, e := range events {
		for _, p := range payloadsOf(e) {
			switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
			case converter.MetadataEncodingNil, converter.MetadataEncodingBinary, converter.MetadataEncodingJSON,
				converter.MetadataEncodingProto, converter.MetadataEncodingProtoJSON:
			default:
				return fmt.Sprintf("a payload of event %d is encoded (%s)%s", e.GetEventId(), encoding, needs(p))
			}
		}
	}
	return ""
}
