package historyfile

import (
	"cmp"
	"io"
	"slices"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
)

// Write writes a history as the temporal command does, which Temporal's replayers take.
func Write(w io.Writer, events []*historypb.HistoryEvent) error {
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(&historypb.History{Events: events})
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

func sortUnread(list []Unread) {
	slices.SortFunc(list, func(a, b Unread) int { return cmp.Compare(a.Index, b.Index) })
}
