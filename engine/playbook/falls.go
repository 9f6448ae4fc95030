package playbook

// Thresholds of a collapse, see [FindingCollapse].
const (
	// CollapseShare is the part of a playbook that one merge has to take away to be called
	// a collapse, of its bullets or of the bytes of their contents.
	CollapseShare = 0.30
	// CollapseWindow and CollapseWindowShare are the same for a run of merges.
	CollapseWindow      = 20
	CollapseWindowShare = 0.50
	// CollapseLeast is how many bullets a playbook has to have had.
	CollapseLeast = 10
)

// maxFalls bounds the collapses that are remembered; the newest stay.
const maxFalls = 50

// Fall is a playbook that lost much at once: from its size Before to After, by the merges
// from one number to another.
type Fall struct {
	From   int     `json:"from"`
	To     int     `json:"to"`
	Before Size    `json:"before"`
	After  Size    `json:"after"`
	By     *Source `json:"by"` // the last merge, which took most where From equals To
}

// falls watches the sizes of a branch go by.
type falls struct {
	window []Size // the newest sizes, oldest first
	found  []Fall
}

func (f *falls) note(by *Source, now Size) {
	if n := len(f.window); n > 0 && lost(f.window[n-1], now, CollapseShare) {
		f.add(Fall{From: now.Seq, To: now.Seq, Before: f.window[n-1], After: now, By: by})
	}
	peak := -1
	for i, before := range f.window {
		if lost(before, now, CollapseWindowShare) && (peak < 0 || before.Bullets >= f.window[peak].Bullets) {
			peak = i
		}
	}
	if peak >= 0 {
		f.add(Fall{From: f.window[peak].Seq + 1, To: now.Seq, Before: f.window[peak], After: now, By: by})
	}
	if len(f.window) >= CollapseWindow {
		f.window = f.window[1:]
	}
	f.window = append(f.window, now)
}

// add notes a fall; the sizes before it are forgotten, so that it is told once.
func (f *falls) add(fall Fall) {
	f.window = nil
	if len(f.found) >= maxFalls {
		f.found = append([]Fall{}, f.found[1:]...)
	}
	f.found = append(f.found, fall)
}

// lost tells whether so large a part is gone, of the bullets or of what they say.
func lost(before, now Size, share float64) bool {
	if before.Bullets < CollapseLeast {
		return false
	}
	return float64(now.Bullets) <= (1-share)*float64(before.Bullets) || float64(now.Bytes) <= (1-share)*float64(before.Bytes)
}
