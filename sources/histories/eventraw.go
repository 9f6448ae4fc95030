package histories

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"io"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
)

// rawStore keeps whole events compressed, some of them in a block. It stops at MaxKept
// bytes: an event after that is known in short only.
type rawStore struct {
	blocks []rawBlock
	bytes  int64
	writer *flate.Writer
	buf    []byte
}

// rawBlock is events one after the other, each behind its length, compressed.
type rawBlock []byte

// A block ends at so many events or bytes, whatever comes first: opening one event costs
// the unpacking of its block.
const (
	blockEvents = 64
	blockBytes  = 256 << 10
)

// rawPlace says where an event lies: the number of its block, from 1, and which one of
// the block it is.
type rawPlace struct {
	block uint32
	slot  uint16
}

func (p rawPlace) kept() bool { return p.block > 0 }

// add keeps events and tells where, and how large each is.
func (s *rawStore) add(events []*historypb.HistoryEvent) ([]rawPlace, []int) {
	places, sizes := make([]rawPlace, len(events)), make([]int, len(events))
	slot := 0
	s.buf = s.buf[:0]
	for i, e := range events {
		sizes[i] = proto.Size(e)
		if s.bytes >= MaxKept {
			continue
		}
		s.buf = binary.AppendUvarint(s.buf, uint64(sizes[i]))
		s.buf, _ = proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(s.buf, e) // an event that was just decoded
		places[i] = rawPlace{uint32(len(s.blocks) + 1), uint16(slot)}
		if slot++; slot == blockEvents || len(s.buf) >= blockBytes || i == len(events)-1 {
			s.flush()
			slot = 0
		}
	}
	s.flush()
	return places, sizes
}

func (s *rawStore) flush() {
	if len(s.buf) == 0 {
		return
	}
	var out bytes.Buffer
	if s.writer == nil {
		s.writer, _ = flate.NewWriter(&out, flate.BestSpeed) // the level is valid
	} else {
		s.writer.Reset(&out)
	}
	_, _ = s.writer.Write(s.buf) // to memory
	_ = s.writer.Close()
	block := bytes.Clone(out.Bytes())
	s.blocks = append(s.blocks, block)
	s.bytes += int64(len(block))
	s.buf = s.buf[:0]
}

// unpack is the events of a block in their encoding.
func (b rawBlock) unpack() ([][]byte, error) {
	all, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, err
	}
	var events [][]byte
	for len(all) > 0 {
		size, n := binary.Uvarint(all)
		if n <= 0 || uint64(len(all)-n) < size {
			return nil, fmt.Errorf("a block of events is torn")
		}
		events = append(events, all[n:n+int(size)])
		all = all[n+int(size):]
	}
	return events, nil
}

// Raw is the whole event with an id, nil where it is not held.
func (l *EventLog) Raw(id int64) (*historypb.HistoryEvent, error) {
	row := l.Event(id)
	if row == nil || !row.place.kept() {
		return nil, nil
	}
	events, err := l.raw[row.place.block-1].unpack()
	if err != nil {
		return nil, err
	}
	e := &historypb.HistoryEvent{}
	return e, proto.Unmarshal(events[row.place.slot], e)
}
