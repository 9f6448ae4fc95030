package history

import (
	"encoding/json"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
)

// Names of the markers that the Go SDK writes.
const (
	MarkerSideEffect    = "SideEffect"
	MarkerMutable       = "MutableSideEffect"
	MarkerVersion       = "Version"
	MarkerLocalActivity = "LocalActivity"
)

// Marker is the content of a marker.
type Marker struct {
	Name    string
	Result  *commonpb.Payloads // of a side effect or local activity, or the version
	Failure *failurepb.Failure // of a local activity
	Change  string             // ID of the change of a version
	Local   LocalActivity
	Unread  bool // Change or Local cannot be read
}

// LocalActivity describes a local activity.
type LocalActivity struct {
	ActivityID, ActivityType string
	Attempt                  int32
}

// MarkerOf reads a marker.
func MarkerOf(a *historypb.MarkerRecordedEventAttributes) Marker {
	details := a.GetDetails()
	m := Marker{Name: a.GetMarkerName(), Result: details["data"], Failure: a.GetFailure()}
	switch m.Name {
	case MarkerVersion:
		m.Result = details["version"]
		m.Unread = json.Unmarshal(JSON(details["change-id"]), &m.Change) != nil
	case MarkerLocalActivity:
		m.Result = details["result"]
		m.Unread = json.Unmarshal(JSON(details["data"]), &m.Local) != nil
	}
	return m
}
