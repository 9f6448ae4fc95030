package cluster

import (
	"fmt"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// pageOfRuns returns a page with 20 runs.
func pageOfRuns() *workflowservice.ListWorkflowExecutionsResponse {
	text := func(v string) *commonpb.Payload {
		return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
			Data: []byte(v)}
	}
	page := &workflowservice.ListWorkflowExecutionsResponse{NextPageToken: []byte("next")}
	for i := range 20 {
		info := &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: fmt.Sprint("w", i), RunId: "r"},
			StartTime: &timestamppb.Timestamp{Seconds: int64(i)}, HistoryLength: 7, TaskQueue: "q",
			Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{"m": text(fmt.Sprint(i))}},
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
				"Task": text(fmt.Sprint(i)), "Model": text(`"a"`), "Phase": text(fmt.Sprint(i % 3)),
				"Empty": {}}},
		}
		if i%5 == 0 {
			info.SearchAttributes = nil
		}
		page.Executions = append(page.Executions, info)
	}
	return page
}

// TestListCodec checks that a page is decoded to the same message as by the default codec.
func TestListCodec(t *testing.T) {
	page := pageOfRuns()
	data, err := proto.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	codec := listCodec{encoding.GetCodecV2("proto")}
	var got workflowservice.ListWorkflowExecutionsResponse
	err = codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &got)
	if err != nil || !proto.Equal(&got, page) {
		t.Errorf("%v, other messages", err)
	}
	a, b := got.Executions[1].SearchAttributes.IndexedFields, got.Executions[4].SearchAttributes.IndexedFields
	if a["Model"] != b["Model"] || a["Phase"] != b["Phase"] {
		t.Error("equal attributes are decoded twice")
	}
	for n := range data {
		cut := mem.BufferSlice{mem.SliceBuffer(data[:n])}
		want := proto.Unmarshal(data[:n], &workflowservice.ListWorkflowExecutionsResponse{})
		err := codec.Unmarshal(cut, &workflowservice.ListWorkflowExecutionsResponse{})
		if (err == nil) != (want == nil) {
			t.Errorf("%d of %d bytes: %v, want %v", n, len(data), err, want)
		}
	}
}

// FuzzListCodec checks that every page that the default codec decodes is decoded.
func FuzzListCodec(f *testing.F) {
	page := pageOfRuns()
	page.Executions = page.Executions[:2]
	data, err := proto.Marshal(page)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	codec := listCodec{encoding.GetCodecV2("proto")}
	f.Fuzz(func(t *testing.T, data []byte) {
		want := proto.Unmarshal(data, &workflowservice.ListWorkflowExecutionsResponse{})
		err := codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)},
			&workflowservice.ListWorkflowExecutionsResponse{})
		if err != nil && want == nil {
			t.Error(err)
		}
	})
}
