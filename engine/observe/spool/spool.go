// Package spool is a directory in which whoever observes leaves what he saw, for acescope
// to fetch. It is made for a hook that lives a millisecond: it imports a few small parts of
// the standard library, neither fmt nor any JSON.
//
// A record is one line, written by one write to the end of the file "active". It begins
// with an empty line, so that what a writer left unfinished before it spoils no other, and
// carries its length and a check sum. The reader (engine/observe) renames the file when it
// is large and removes it when nobody can write to it any more: writers hold a shared lock,
// and write elsewhere when the file is gone.
//
// Order: that of the writes. Bounds: the file takes no more than [MaxBytes], a record no
// more than [MaxPayload]. Loss: what does not fit is counted, a byte for each in the file
// "dropped"; what a full disk cuts is found by its check sum.
package spool

import (
	"errors"
	"hash/crc32"
	"os"
	"strconv"
	"time"
)

// Bounds of a spool, in bytes.
const (
	MaxBytes   = 256 << 20 // of the file that is written to
	MaxPayload = 8 << 20   // of one record
)

// Names in the directory.
const (
	Active  = "active"
	Dropped = "dropped"
	Old     = ".old"   // ends the name of a file that is written to no more
	Extra   = "extra-" // begins the name of a file with a single record
)

// Kind says what a record holds.
type Kind byte

// Kinds of records. A cut one is longer than [MaxPayload] was.
const (
	Hook    Kind = 'h' // what an agent's hook was given
	HookCut Kind = 'c'
	Event   Kind = 'e' // what an observer in Go told
)

// Record is one record. Payload has no line breaks.
type Record struct {
	Kind    Kind
	Micros  int64 // since 1970, when it was written
	PID     int
	ID      string // unique on this machine
	Payload []byte
}

// Env names the environment variable of the directory.
const Env = "ACESCOPE_SPOOL"

// Dir is the directory that the environment says, "" where it says none.
func Dir(getenv func(string) string) string {
	if dir := getenv(Env); dir != "" {
		return absolute(dir)
	}
	if dir := absolute(getenv("XDG_STATE_HOME")); dir != "" {
		return dir + "/acescope/spool"
	}
	if home := absolute(getenv("HOME")); home != "" {
		return home + "/.local/state/acescope/spool"
	}
	return ""
}

func absolute(dir string) string {
	if dir == "" || !os.IsPathSeparator(dir[0]) && (len(dir) < 3 || dir[1] != ':') {
		return ""
	}
	return dir
}

// Errors of writing.
var (
	ErrFull = errors.New("the spool is full")
	errGone = errors.New("the file was taken away")
)

// mark begins every record.
const mark = "ace1 "

const maxTries = 4

// Append writes a record. Line breaks in the payload become spaces, in place.
func Append(dir string, kind Kind, payload []byte) error {
	now := time.Now()
	id := strconv.FormatInt(now.UnixNano(), 36) + "-" + strconv.Itoa(os.Getpid())
	return appendAs(dir, kind, id, now, payload)
}

func appendAs(dir string, kind Kind, id string, now time.Time, payload []byte) error {
	for i, c := range payload {
		if c == '\n' || c == '\r' {
			payload[i] = ' '
		}
	}
	line := encode(Record{Kind: kind, Micros: now.UnixMicro(), PID: os.Getpid(), ID: id, Payload: payload})
	made := false
	for range maxTries {
		err := write(dir+"/"+Active, line)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrFull):
			count(dir)
			return err
		case errors.Is(err, os.ErrNotExist) && !made:
			if made = true; os.MkdirAll(dir, 0o700) != nil {
				return err
			}
		case !errors.Is(err, errGone):
			return err
		}
	}
	return writeExtra(dir+"/"+Extra+id, line)
}

// encode makes the line of a record: an empty one, then its kind, time, process, id, length
// and check sum, and the payload.
func encode(r Record) []byte {
	line := make([]byte, 0, len(r.Payload)+128)
	line = append(line, '\n')
	line = append(line, mark...)
	line = appendHead(line, r)
	sum := check(r)
	line = append(line, ' ')
	line = strconv.AppendUint(line, uint64(sum), 16)
	line = append(line, ' ')
	line = append(line, r.Payload...)
	return append(line, '\n')
}

func appendHead(line []byte, r Record) []byte {
	line = append(line, byte(r.Kind), ' ')
	line = append(strconv.AppendInt(line, r.Micros, 10), ' ')
	line = append(strconv.AppendInt(line, int64(r.PID), 10), ' ')
	line = append(append(line, r.ID...), ' ')
	return strconv.AppendInt(line, int64(len(r.Payload)), 10)
}

func check(r Record) uint32 {
	head := appendHead(make([]byte, 0, 96), r)
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, r.Payload)
}

// count notes that a record was dropped.
func count(dir string) {
	f, err := os.OpenFile(dir+"/"+Dropped, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, _ = f.Write([]byte{'.'})
		_ = f.Close()
	}
}

func writeExtra(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}
