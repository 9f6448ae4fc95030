package sources

// logRing keeps the newest lines within two bounds. What it hands out is never written to
// again: lines are only added behind it.
type logRing struct {
	maxLines int
	maxBytes int64
	all      []LogEntry // those before from were dropped
	from     int
	bytes    int64 // of what is kept
	dead     int64 // of what was dropped and still lies in all
	dropped  int64
}

func (r *logRing) add(e LogEntry) {
	if len(r.all) == cap(r.all) || r.dead > r.maxBytes {
		r.compact()
	}
	r.all = append(r.all, e)
	r.bytes += entryBytes(e)
	for len(r.all)-r.from > r.maxLines || r.bytes > r.maxBytes && len(r.all)-r.from > 1 {
		n := entryBytes(r.all[r.from])
		r.bytes, r.dead = r.bytes-n, r.dead+n
		r.from++
		r.dropped++
	}
}

// compact moves what is kept to a room of its own, twice as large as it or so, so that
// what was dropped can be freed.
func (r *logRing) compact() {
	kept := r.all[r.from:]
	r.all = append(make([]LogEntry, 0, min(2*len(kept)+256, 2*r.maxLines+256)), kept...)
	r.from, r.dead = 0, 0
}

func (r *logRing) lines() []LogEntry { return r.all[r.from:len(r.all):len(r.all)] }

func entryBytes(e LogEntry) int64 { return int64(len(e.Text)) }
