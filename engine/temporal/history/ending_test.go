package history_test

import (
	"fmt"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	updatepb "go.temporal.io/api/update/v1"
	"google.golang.org/protobuf/proto"

	"acescope/engine/temporal/history"
	"acescope/engine/temporal/replay/replaytest"
)

func applicationFailure(text string) *failurepb.Failure {
	return &failurepb.Failure{Message: text, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "Unlucky"}}}
}

func canceledFailure() *failurepb.Failure {
	return &failurepb.Failure{FailureInfo: &failurepb.Failure_CanceledFailureInfo{
		CanceledFailureInfo: &failurepb.CanceledFailureInfo{}}}
}

func timeoutFailure() *failurepb.Failure {
	return &failurepb.Failure{FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
		TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{}}}
}

// wrapped returns a failure of a local activity as the Java SDK records it.
func wrapped(cause *failurepb.Failure) *failurepb.Failure {
	return &failurepb.Failure{Message: "Local Activity task failed", Cause: cause,
		FailureInfo: &failurepb.Failure_ActivityFailureInfo{
			ActivityFailureInfo: &failurepb.ActivityFailureInfo{}}}
}

func payloads(json string) *commonpb.Payloads {
	return &commonpb.Payloads{Payloads: []*commonpb.Payload{{
		Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(json)}}}
}

func markerOf(name string, failure *failurepb.Failure,
	details map[string]string) *historypb.MarkerRecordedEventAttributes {
	m := &historypb.MarkerRecordedEventAttributes{MarkerName: name, Failure: failure,
		Details: map[string]*commonpb.Payloads{}}
	for key, json := range details {
		m.Details[key] = payloads(json)
	}
	return m
}

func updateCompleted(f *failurepb.Failure) proto.Message {
	return &historypb.WorkflowExecutionUpdateCompletedEventAttributes{AcceptedEventId: 4,
		Outcome: &updatepb.Outcome{Value: &updatepb.Outcome_Failure{Failure: f}}}
}

// An event ends what it is about only if it says so: a request and its delivery do not end their target.
func TestEndings(t *testing.T) {
	canceled := history.Canceled().Message
	core := map[string]string{"data": `{"activity_type":"book","attempt":1}`}
	java := map[string]string{"type": `"Book"`, "meta": `{"atpt":1,"backoff":null}`}
	for _, c := range []struct {
		attributes proto.Message
		want       string // started event, status, whether it is an error, reason
	}{
		{updateCompleted(applicationFailure("thirteen")), "4 failed true thirteen"},
		{updateCompleted(canceledFailure()), "4 canceled false " + canceled},
		{&historypb.WorkflowExecutionUpdateCompletedEventAttributes{AcceptedEventId: 4}, "4 completed false"},
		{&historypb.WorkflowExecutionUpdateRejectedEventAttributes{}, "no ending, rejected true"},
		{&historypb.WorkflowExecutionUpdateAcceptedEventAttributes{}, "no ending"},
		{&historypb.WorkflowExecutionUpdateAdmittedEventAttributes{}, "no ending"},
		{&historypb.NexusOperationCancelRequestedEventAttributes{ScheduledEventId: 2}, "no ending"},
		{&historypb.NexusOperationCancelRequestCompletedEventAttributes{ScheduledEventId: 2,
			RequestedEventId: 3}, "3 completed false"},
		{&historypb.NexusOperationCancelRequestFailedEventAttributes{ScheduledEventId: 2, RequestedEventId: 3,
			Failure: applicationFailure("no handler")}, "3 failed true no handler"},
		{&historypb.NexusOperationCanceledEventAttributes{ScheduledEventId: 2}, "2 canceled false " +
			canceled},
		{&historypb.ActivityTaskCancelRequestedEventAttributes{ScheduledEventId: 2}, "no ending"},
		{&historypb.WorkflowExecutionCancelRequestedEventAttributes{}, "no ending"},
		{&historypb.SignalExternalWorkflowExecutionInitiatedEventAttributes{}, "no ending"},
		{&historypb.ExternalWorkflowExecutionSignaledEventAttributes{InitiatedEventId: 2},
			"2 completed false"},
		{&historypb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes{}, "no ending"},
		{&historypb.ExternalWorkflowExecutionCancelRequestedEventAttributes{InitiatedEventId: 2},
			"2 completed false"},
		{&historypb.RequestCancelExternalWorkflowExecutionFailedEventAttributes{InitiatedEventId: 2,
			Cause: enumspb.CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND},
			"2 failed true NamespaceNotFound"},
		{&historypb.ChildWorkflowExecutionTimedOutEventAttributes{InitiatedEventId: 2, StartedEventId: 3},
			"2 timed out true the child workflow timed out"},
		{markerOf("core_local_activity", applicationFailure("disk full"), core), "9 failed true disk full"},
		{markerOf("core_local_activity", timeoutFailure(), core), "9 timed out true"},
		{markerOf("core_local_activity", nil, core), "9 completed false"},
		{markerOf("LocalActivity", wrapped(applicationFailure("no city")), java), "9 failed true no city"},
		{markerOf("LocalActivity", wrapped(canceledFailure()), java), "9 canceled false " + canceled},
		{markerOf("LocalActivity", applicationFailure("x"), map[string]string{
			"data": `{"ActivityType":"Book","Attempt":1,"Backoff":60000000000}`}), "no ending, failed true"},
		{&historypb.WorkflowExecutionFailedEventAttributes{}, "no ending, failed true"},
		{&historypb.WorkflowExecutionSignaledEventAttributes{}, "no ending"},
		{&historypb.WorkflowTaskFailedEventAttributes{ScheduledEventId: 2,
			Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW}, "2 failed false"},
	} {
		e := replaytest.EventOf(c.attributes)
		e.EventId = 9
		status := map[history.EndStatus]string{history.EndCompleted: "completed", history.EndFailed: "failed",
			history.EndTimedOut: "timed out", history.EndCanceled: "canceled",
			history.EndRejected: "rejected"}[history.EndStatusOf(e)]
		end, ok := history.EndingOf(e)
		got := "no ending"
		if ok {
			got = fmt.Sprintf("%d %s %t", end.Started, status, history.IsError(e))
			if f := end.Reason(); end.Failure != nil || end.Status == history.EndCanceled {
				got = strings.TrimSpace(got + " " + f.Message)
			}
		} else if status != "" {
			got += fmt.Sprintf(", %s %t", status, history.IsError(e))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", e.GetEventType(), got, c.want)
		}
	}
}

// Each type of event ends something or is in the list, so that a new type of the API fails the test.
func TestEveryEventTypeIsKnown(t *testing.T) {
	others := strings.Fields(`Unspecified WorkflowExecutionStarted WorkflowTaskScheduled WorkflowTaskStarted
		ActivityTaskScheduled ActivityTaskStarted ActivityTaskCancelRequested TimerStarted
		WorkflowExecutionCancelRequested RequestCancelExternalWorkflowExecutionInitiated
		WorkflowExecutionSignaled StartChildWorkflowExecutionInitiated ChildWorkflowExecutionStarted
		SignalExternalWorkflowExecutionInitiated UpsertWorkflowSearchAttributes
		WorkflowExecutionUpdateAdmitted WorkflowExecutionUpdateAccepted
		WorkflowPropertiesModifiedExternally ActivityPropertiesModifiedExternally WorkflowPropertiesModified
		NexusOperationScheduled NexusOperationStarted NexusOperationCancelRequested
		WorkflowExecutionOptionsUpdated WorkflowExecutionPaused WorkflowExecutionUnpaused
		WorkflowExecutionTimeSkippingTransitioned`)
	no := map[string]bool{}
	for _, name := range others {
		no[name] = true
	}
	ends := 0
	for number := range enumspb.EventType_name {
		kind := enumspb.EventType(number)
		status := history.EndStatusOf(&historypb.HistoryEvent{EventType: kind})
		if (status == 0) != no[kind.String()] {
			t.Errorf("%s: status %d", kind, status)
		}
		if status != 0 {
			ends++
		}
	}
	if ends+len(others) != len(enumspb.EventType_name) {
		t.Errorf("%d ends and %d others of %d types", ends, len(others), len(enumspb.EventType_name))
	}
}

// The markers of all SDKs name the type, the ID and the attempt of a local activity, and what changed.
func TestMarkers(t *testing.T) {
	failure := applicationFailure("x")
	for what, c := range map[string]struct {
		marker *historypb.MarkerRecordedEventAttributes
		want   history.Marker
	}{
		"go": {markerOf("LocalActivity", nil, map[string]string{
			"data": `{"ActivityID":"1","ActivityType":"Book","Attempt":2,"Backoff":0}`, "result": "7"}),
			history.Marker{Name: history.MarkerLocalActivity, Result: payloads("7"),
				Local: history.LocalActivity{ActivityID: "1", ActivityType: "Book", Attempt: 2}}},
		"go, not retried": {markerOf("LocalActivity", failure, map[string]string{
			"data": `{"ActivityID":"1","ActivityType":"Book","Attempt":2,"Backoff":-1}`}),
			history.Marker{Name: history.MarkerLocalActivity, Failure: failure,
				Local: history.LocalActivity{ActivityID: "1", ActivityType: "Book", Attempt: 2}}},
		"go, retried": {markerOf("LocalActivity", failure, map[string]string{
			"data": `{"ActivityID":"1","ActivityType":"Book","Attempt":2,"Backoff":1000}`}),
			history.Marker{Name: history.MarkerLocalActivity, Failure: failure,
				Local: history.LocalActivity{ActivityID: "1", ActivityType: "Book", Attempt: 2,
					Retried: true}}},
		"core": {markerOf("core_local_activity", nil, map[string]string{
			"data":   `{"seq":2,"attempt":3,"activity_id":"2","activity_type":"book","backoff":null}`,
			"result": `"r"`}),
			history.Marker{Name: history.MarkerLocalActivity, Result: payloads(`"r"`),
				Local: history.LocalActivity{ActivityID: "2", ActivityType: "book", Attempt: 3}}},
		"core, retried": {markerOf("core_local_activity", failure, map[string]string{
			"data": `{"attempt":3,"activity_id":"2","activity_type":"book","backoff":{"seconds":61,"nanos":0}}`}),
			history.Marker{Name: history.MarkerLocalActivity, Failure: failure,
				Local: history.LocalActivity{ActivityID: "2", ActivityType: "book", Attempt: 3,
					Retried: true}}},
		"java": {markerOf("LocalActivity", nil, map[string]string{"activityId": `"u-1"`, "type": `"Book"`,
			"meta": `{"firstSkd":1,"atpt":4,"backoff":null}`, "input": "1", "time": "2", "result": "true"}),
			history.Marker{Name: history.MarkerLocalActivity, Result: payloads("true"),
				Local: history.LocalActivity{ActivityID: "u-1", ActivityType: "Book", Attempt: 4}}},
		"java, retried": {markerOf("LocalActivity", failure, map[string]string{"activityId": `"u-1"`,
			"type": `"Book"`, "meta": `{"atpt":4,"backoff":60.5}`}),
			history.Marker{Name: history.MarkerLocalActivity, Failure: failure,
				Local: history.LocalActivity{ActivityID: "u-1", ActivityType: "Book", Attempt: 4,
					Retried: true}}},
		"unreadable": {markerOf("core_local_activity", failure, nil),
			history.Marker{Name: history.MarkerLocalActivity, Failure: failure, Unread: true}},
		"go version": {markerOf("Version", nil, map[string]string{"change-id": `"c"`, "version": "2"}),
			history.Marker{Name: history.MarkerVersion, Change: "c", Result: payloads("2")}},
		"java version": {markerOf("Version", nil, map[string]string{"changeId": `"c"`, "version": "2"}),
			history.Marker{Name: history.MarkerVersion, Change: "c", Result: payloads("2")}},
		"patch": {markerOf("core_patch", nil,
			map[string]string{"patch-data": `{"id":"p","deprecated":true}`}),
			history.Marker{Name: history.MarkerVersion, Change: "p"}},
		"unreadable version": {markerOf("Version", nil, nil),
			history.Marker{Name: history.MarkerVersion, Unread: true}},
	} {
		got := history.MarkerOf(c.marker)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s:\n%v, want\n%v", what, got, c.want)
		}
	}
}

// FuzzMarker checks that no details of a marker are too odd to read, and that an unreadable one says so.
func FuzzMarker(f *testing.F) {
	f.Add("core_local_activity", `{"activity_type":"a","backoff":{}}`, `{"atpt":1}`, `"T"`)
	f.Add("LocalActivity", `{"ActivityType":1}`, `[]`, `null`)
	f.Add("core_patch", `{"id":null}`, `{"ID":3}`, `""`)
	f.Add("Version", `"c"`, `x`, `{}`)
	f.Fuzz(func(t *testing.T, name, data, meta, kind string) {
		a := markerOf(name, nil, map[string]string{"data": data, "meta": meta, "type": kind,
			"patch-data": data,
			"change-id":  meta})
		m := history.MarkerOf(a)
		if m.Local.Retried || m.Name == history.MarkerLocalActivity &&
			m.Unread != (m.Local.ActivityType == "") {
			t.Errorf("%+v", m)
		}
		if end, ok := history.EndingOf(&historypb.HistoryEvent{EventId: 5,
			EventType:  enumspb.EVENT_TYPE_MARKER_RECORDED,
			Attributes: replaytest.EventOf(a).GetAttributes()}); !ok || end.Started != 5 {
			t.Errorf("%+v %v", end, ok)
		}
	})
}
