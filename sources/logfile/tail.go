package logfile

import (
	"bytes"
	"errors"
	"io"
)

// tailBlock is how much is read at once when reading backwards.
const tailBlock = 64 << 10

// lastLines is the offset at which the last n lines of the first size bytes begin. A last
// line without an end counts.
func lastLines(r io.ReaderAt, size int64, n int) (int64, error) {
	if n <= 0 {
		return size, nil
	}
	buf := make([]byte, tailBlock)
	end, left := size, n
	for end > 0 {
		start := max(end-tailBlock, 0)
		block := buf[:end-start]
		if err := readFull(r, block, start); err != nil {
			return 0, err
		}
		if end == size && block[len(block)-1] == '\n' {
			block = block[:len(block)-1]
		}
		for {
			at := bytes.LastIndexByte(block, '\n')
			if at < 0 {
				break
			}
			if left--; left == 0 {
				return start + int64(at) + 1, nil
			}
			block = block[:at]
		}
		end = start
	}
	return 0, nil
}

// countLines is how many lines end in the first size bytes.
func countLines(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 4*tailBlock)
	var n int64
	for at := int64(0); at < size; {
		block := buf[:min(int64(len(buf)), size-at)]
		if err := readFull(r, block, at); err != nil {
			return 0, err
		}
		n += int64(bytes.Count(block, []byte{'\n'}))
		at += int64(len(block))
	}
	return n, nil
}

func readFull(r io.ReaderAt, p []byte, at int64) error {
	n, err := r.ReadAt(p, at)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF // it was emptied meanwhile
	}
	return err
}
