package spool

import (
	"bytes"
	"strconv"
)

// Parse reads a line without its line break; false where it is no whole record. The
// payload is a part of the line.
func Parse(line []byte) (Record, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	if !ok || len(rest) < 2 || rest[1] != ' ' {
		return Record{}, false
	}
	r := Record{Kind: Kind(rest[0])}
	rest = rest[2:]
	var fields [5]string // time, process, id, length, check sum
	for i := range fields {
		at := bytes.IndexByte(rest, ' ')
		if at < 0 || at > 64 {
			return Record{}, false
		}
		fields[i], rest = string(rest[:at]), rest[at+1:]
	}
	var errs [4]error
	var size int
	var sum uint64
	r.Micros, errs[0] = strconv.ParseInt(fields[0], 10, 64)
	r.PID, errs[1] = strconv.Atoi(fields[1])
	size, errs[2] = strconv.Atoi(fields[3])
	sum, errs[3] = strconv.ParseUint(fields[4], 16, 32)
	for _, err := range errs {
		if err != nil {
			return Record{}, false
		}
	}
	r.ID, r.Payload = fields[2], rest
	return r, r.ID != "" && r.Micros > 0 && size == len(rest) && uint64(check(r)) == sum
}
