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
//
// Payloads are compared here and not by a library, for three reasons that were measured
// (github.com/wI2L/jsondiff v0.7.1, on two cores). It holds numbers as 64-bit floats, so
// that whole numbers that differ after 16 digits are equal to it. With its LCS option a
// list of 4,000 elements, of which some are gone, takes 9.3 s (1,000: 0.47 s), here 49 ms;
// without the option one missing element makes all behind it differ (11,528 changes for
// 236). And it has no bound on what it looks at. BenchmarkChanges and TestChangesAreTrue
// hold what is claimed of this one.
package compare
