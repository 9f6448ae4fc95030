package history

import (
	"cmp"
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

// coreNames holds the names of the Go SDK for the markers of the SDKs on Core: Python, TypeScript and others.
var coreNames = map[string]string{"core_patch": MarkerVersion, "core_local_activity": MarkerLocalActivity}

// Marker is the content of a marker.
type Marker struct {
	Name    string             // as the Go SDK names such a marker
	Result  *commonpb.Payloads // of a side effect or local activity, or the version; nil for a patch
	Failure *failurepb.Failure // of a local activity
	Change  string             // ID of the change of a version or patch
	Local   LocalActivity
	Unread  bool // Change or Local cannot be read
}

// LocalActivity describes a local activity.
type LocalActivity struct {
	ActivityID, ActivityType string
	Attempt                  int32
	Retried                  bool `json:"-"` // the attempt failed, and a timer delays the next one
}

// MarkerOf reads a marker of any SDK.
func MarkerOf(a *historypb.MarkerRecordedEventAttributes) Marker {
	details := a.GetDetails()
	m := Marker{Name: cmp.Or(coreNames[a.GetMarkerName()], a.GetMarkerName()), Result: details["data"],
		Failure: a.GetFailure()}
	switch m.Name {
	case MarkerVersion:
		m.Result = details["version"]
		patch := struct{ ID *string }{&m.Change}
		m.Unread = json.Unmarshal(JSON(cmp.Or(details["change-id"], details["changeId"])),
			&m.Change) != nil &&
			json.Unmarshal(JSON(details["patch-data"]), &patch) != nil
	case MarkerLocalActivity:
		m.Result = details["result"]
		m.Local = localActivityOf(details)
		m.Local.Retried = m.Local.Retried && m.Failure != nil
		m.Unread = m.Local.ActivityType == ""
	}
	return m
}

// localActivityOf reads the details of a local activity: an object of the Go SDK or the SDKs on Core, or the
// payloads of the Java SDK. What cannot be read stays zero.
func localActivityOf(details map[string]*commonpb.Payloads) LocalActivity {
	var d struct {
		LocalActivity
		ID      string `json:"activity_id"`
		Type    string `json:"activity_type"`
		Java    int32  `json:"atpt"`
		Backoff any
	}
	for part, into := range map[string]any{"data": &d, "meta": &d, "activityId": &d.ID, "type": &d.Type} {
		_ = json.Unmarshal(JSON(details[part]), into)
	}
	wait, isNumber := d.Backoff.(float64)
	return LocalActivity{cmp.Or(d.ActivityID, d.ID), cmp.Or(d.ActivityType, d.Type),
		cmp.Or(d.Attempt, d.Java), wait > 0 || !isNumber && d.Backoff != nil}
}
