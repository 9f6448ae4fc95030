package logs

// LogRing keeps the newest lines within two bounds. What it hands out is never written to
// again: lines are only added behind it.
type LogRing struct {
	MaxLines int
	MaxBytes int64
	all      []LogEntry // those before from were dropped
	from     int
	Bytes    int64 // of what is kept
	Dead     int64 // of what was dropped and still lies in all
	Dropped  int64
}

func (r *LogRing) Add(e LogEntry) {
	if len(r.all) == cap(r.all) || r.Dead > r.MaxBytes {
		r.compact()
	}
	r.all = append(r.all, e)
	r.Bytes += entryBytes(e)
	for len(r.all)-r.from > r.MaxLines || r.Bytes > r.MaxBytes && len(r.all)-r.from > 1 {
		n := entryBytes(r.all[r.from])
		r.Bytes, r.Dead = r.Bytes-n, r.Dead+n
		r.from++
		r.Dropped++
	}
}

// compact moves what is kept to a room of its own, twice as large as it or so, so that
// what was dropped can be freed.
func (r *LogRing) compact() {
	kept := r.all[r.from:]
	r.all = append(make([]LogEntry, 0, min(2*len(kept)+256, 2*r.MaxLines+256)), kept...)
	r.from, r.Dead = 0, 0
}

func (r *LogRing) Lines() []LogEntry { return r.all[r.from:len(r.all):len(r.all)] }

func entryBytes(e LogEntry) int64 { return int64(len(e.Text)) }
