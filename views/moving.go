package views

// listControls steer which part of the list of runs is held.
type listControls interface {
	// LoadMore holds more of the older runs, LoadNewer of the newer ones.
	LoadMore()
	LoadNewer()
	// LoadFirst goes to the newest runs, LoadLast walks to the oldest; StopWalk ends that
	// where it is.
	LoadFirst()
	LoadLast()
	StopWalk()
}
