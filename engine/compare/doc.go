// Package compare puts two runs side by side. It takes the histories apart into steps,
// aligns those by what they are (the activity, the tool, the child and which time it was),
// not by event number, and says what differs in their payloads and in the whole. It may
// import engine/ace, engine/history and Temporal's API types.
//
// Order: pairs stand in the order of both runs; where they cannot, the first run's comes
// first. Bounds: a payload above [MaxPayload] is compared as a whole, and at most
// [MaxChanges] changes of one payload are listed; the rest is counted. Loss: none.
package compare
