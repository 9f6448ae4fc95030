// Package spool stores records of observers in a directory until acescope fetches them. It serves
// a hook that runs for about a millisecond, so it imports only small parts of the standard
// library: no fmt and no JSON.
//
// A record is one line, appended to the file "active" with one write. It starts with an empty
// line, which ends an incomplete record before it, and contains its length and checksum. The
// reader (engine/agents/observe) renames the file when it is large and removes it when no writer
// has it open: writers hold a shared lock, and try again if the file was removed.
//
// The file "quarantine" has the records that cannot be delivered. A file "extra-NAME" has records
// of another source; [Adopt] moves them to "active".
//
// Order: the order of the writes. Bounds: the file has at most [MaxBytes], a record at most
// [MaxPayload], the quarantine at most [MaxQuarantine]. Loss: records that do not fit are counted,
// one byte each in the file "dropped"; the checksum detects records that a full disk truncated.
package spool

import (
	"bytes"
	"errors"
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"time"
)

// Bounds of a spool, in bytes.
const (
	MaxBytes      = 256 << 20 // of the active file
	MaxPayload    = 8 << 20   // of one record
	MaxQuarantine = 16 << 20
)

// Names in the directory.
const (
	Active      = "active"
	Quarantine  = "quarantine"
	Dropped     = "dropped"
	ExtraPrefix = "extra-"
	RotatedExt  = ".old"
)

// Kind is the kind of a record.
type Kind byte

// Kinds of records.
const (
	Hook          Kind = 'h' // the input of an agent's hook
	HookTruncated Kind = 'c' // the same, truncated to [MaxPayload]
	Event         Kind = 'e' // an event of an observer in Go
)

// Record is one record. Payload has no line breaks.
type Record struct {
	Kind    Kind
	Micros  int64 // time of the write, since 1970
	PID     int
	ID      string // unique on this machine
	Payload []byte
}

// Environment variables.
const (
	Env           = "ACESCOPE_SPOOL"      // the directory
	EnvExperiment = "ACESCOPE_EXPERIMENT" // of the runs of an agent's sessions
	// EnvHook is "off" for the agents that acescope itself starts: their calls are recorded already.
	EnvHook = "ACESCOPE_HOOK"
)

// KeyExperiment is the field of a hook's record with the value of [EnvExperiment].
const KeyExperiment = "acescope_experiment"

// maxExperiment bounds the name of an experiment, in bytes.
const maxExperiment = 100

// WithExperiment adds the experiment to the JSON object of a hook, unless it is "".
func WithExperiment(payload []byte, name string) []byte {
	if name == "" || len(payload) == 0 || payload[0] != '{' {
		return payload
	}
	out := append([]byte(nil), `{"`+KeyExperiment+`":"`...)
	for _, c := range []byte(name[:min(len(name), maxExperiment)]) {
		if c < ' ' || c == '"' || c == '\\' {
			c = '_'
		}
		out = append(out, c)
	}
	return append(append(out, `",`...), payload[1:]...)
}

// Dir returns the directory according to the environment, or "".
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

// absolute returns dir if it is an absolute path, otherwise "".
func absolute(dir string) string {
	if dir == "" || !os.IsPathSeparator(dir[0]) && (len(dir) < 3 || dir[1] != ':') {
		return ""
	}
	return dir
}

// Errors of [Append].
var (
	ErrFull    = errors.New("the spool is full")
	errRemoved = errors.New("the file was removed")
)

// mark starts every record.
const mark = "ace1 "

// maxTries bounds how often a record is written again because the reader has just rotated the file.
const maxTries = 1000

// Append appends a record. It replaces line breaks in the payload by spaces, in place.
func Append(dir string, kind Kind, payload []byte) error {
	return appendTo(dir, Active, MaxBytes, kind, payload)
}

// AppendQuarantine is like [Append] for the quarantine.
func AppendQuarantine(dir string, kind Kind, payload []byte) error {
	return appendTo(dir, Quarantine, MaxQuarantine, kind, payload)
}

func appendTo(dir, name string, limit int64, kind Kind, payload []byte) error {
	now := time.Now()
	id := strconv.FormatInt(now.UnixNano(), 36) + "-" + strconv.Itoa(os.Getpid())
	for i, c := range payload {
		if c == '\n' || c == '\r' {
			payload[i] = ' '
		}
	}
	line := encode(Record{Kind: kind, Micros: now.UnixMicro(), PID: os.Getpid(), ID: id, Payload: payload})
	err := appendLines(dir, name, limit, line)
	if errors.Is(err, ErrFull) || errors.Is(err, errRemoved) {
		countDropped(dir)
	}
	return err
}

// extraAge is the age from which the writer of an incomplete extra file is considered dead.
const extraAge = time.Minute

// Adopt moves the records of the extra files to the active file. A crash may repeat some of them.
func Adopt(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ExtraPrefix) || !e.Type().IsRegular() {
			continue
		}
		path := dir + "/" + e.Name()
		info, err := e.Info()
		if err != nil || info.Size() > MaxBytes {
			continue
		}
		lines, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.HasSuffix(lines, []byte{'\n'}) {
			if time.Since(info.ModTime()) < extraAge {
				continue // it is being written
			}
			lines = append(lines, '\n')
		}
		err = appendLines(dir, Active, MaxBytes, lines)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendLines appends lines to a file with one write.
func appendLines(dir, name string, limit int64, lines []byte) error {
	if err := Open(dir); err != nil {
		return err
	}
	for range maxTries {
		if err := write(dir+"/"+name, lines, limit); !errors.Is(err, errRemoved) {
			return err
		}
	}
	return errRemoved
}

// Open creates a missing spool and ends the access of other users to it. It returns an error if another user
// owns the directory or a file in it.
func Open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && isOwn(info) && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(dir, 0o700)
	}
	if err != nil {
		return err
	}
	return Check(dir)
}

// Check returns an error if another user owns a spool or a file in it, or may write to it. A missing spool
// has no error.
func Check(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !isOwn(info):
		return errors.New("spool " + dir + ": another user owns it; choose another with $" + Env)
	case openToOthers(info):
		return errors.New("spool " + dir + ": other users can write to it; run chmod 700 " + dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && !isOwn(info) {
			return errors.New("spool " + dir + ": another user owns its file " + e.Name() + "; delete it")
		}
	}
	return err
}

// CheckSpace returns an error if a record may not fit into a spool.
func CheckSpace(dir string) error {
	if info, err := os.Stat(dir + "/" + Active); err == nil && info.Size() > MaxBytes-MaxPayload {
		return errors.New("spool " + dir + ": it is full, and new records are dropped; run acescope serve, " +
			"which forwards them")
	}
	return nil
}

// encode returns the line of a record: an empty line, then kind, time, process, id, length,
// checksum and payload.
func encode(r Record) []byte {
	line := make([]byte, 0, len(r.Payload)+128)
	line = append(line, '\n')
	line = append(line, mark...)
	line = appendHead(line, r)
	line = append(line, ' ')
	line = strconv.AppendUint(line, uint64(checksum(r)), 16)
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

func checksum(r Record) uint32 {
	head := appendHead(make([]byte, 0, 96), r)
	return crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, r.Payload)
}

// Parse parses a line without its line break; ok is false if it is not a complete record. The
// payload is a part of the line.
func Parse(line []byte) (r Record, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(mark))
	if !ok || len(rest) < 2 || rest[1] != ' ' {
		return Record{}, false
	}
	r.Kind = Kind(rest[0])
	rest = rest[2:]
	var fields [5]string // time, process, id, length, checksum
	for i := range fields {
		at := bytes.IndexByte(rest, ' ')
		if at < 0 || at > 64 {
			return Record{}, false
		}
		fields[i] = string(rest[:at])
		rest = rest[at+1:]
	}
	var errs [4]error
	var size int
	var sum uint64
	r.Micros, errs[0] = strconv.ParseInt(fields[0], 10, 64)
	r.PID, errs[1] = strconv.Atoi(fields[1])
	size, errs[2] = strconv.Atoi(fields[3])
	sum, errs[3] = strconv.ParseUint(fields[4], 16, 32)
	if errors.Join(errs[:]...) != nil {
		return Record{}, false
	}
	r.ID, r.Payload = fields[2], rest
	return r, r.ID != "" && r.Micros > 0 && size == len(rest) && uint64(checksum(r)) == sum
}

func countDropped(dir string) {
	f, err := os.OpenFile(dir+"/"+Dropped, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, _ = f.Write([]byte{'.'})
		_ = f.Close()
	}
}
