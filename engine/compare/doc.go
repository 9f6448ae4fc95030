// Package compare puts two runs side by side. It takes the histories apart into steps,
// aligns those by what they are (the activity, the tool, the child, and what it was given),
// not by event number, and says what differs in their payloads and in the whole. It may
// import engine/ace, engine/history and Temporal's API types.
//
// Order: pairs stand in the order of both runs; where they cannot, the first run's comes
// first. Bounds: of a payload above [MaxPayload] bytes only its bytes are compared, at most
// [MaxNodes] values of one are looked at, and at most [MaxChanges] changes of one pair are
// listed; what is left out is counted or said. Bounds are of work, not of time, so that the
// same histories always give the same answer. Loss: by default what differs between any two
// runs is left out: [Ignored] lists it, [Options] brings it back.
package compare
