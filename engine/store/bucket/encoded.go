package bucket

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Codec encodes and decodes content, for example by encryption. Its methods may be called concurrently.
type Codec interface {
	EncodeData(ctx context.Context, data []byte) ([]byte, error)
	DecodeData(ctx context.Context, data []byte) ([]byte, error)
}

// Bounds of the pieces in which content is encoded, in bytes.
const (
	maxPiece   = 1 << 20
	maxEncoded = 4 << 20
)

// encoded is a bucket whose content is encoded, in pieces that each begin with their length as a varint.
type encoded struct {
	Bucket
	codec Codec
}

func (b encoded) Create(ctx context.Context, key string, content io.Reader) error {
	return b.Bucket.Create(ctx, key, &encoder{ctx: ctx, codec: b.codec, from: content})
}

func (b encoded) Put(ctx context.Context, key string, content io.Reader) error {
	return b.Bucket.Put(ctx, key, &encoder{ctx: ctx, codec: b.codec, from: content})
}

func (b encoded) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := b.Bucket.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	d := &decoder{ctx: ctx, codec: b.codec, from: bufio.NewReader(r), key: key}
	return struct {
		io.Reader
		io.Closer
	}{d, r}, nil
}

// encoder reads encoded pieces.
type encoder struct {
	ctx   context.Context
	codec Codec
	from  io.Reader
	left  []byte // of the last piece
	end   error
}

func (e *encoder) Read(p []byte) (int, error) {
	for len(e.left) == 0 {
		if e.end != nil {
			return 0, e.end
		}
		piece := make([]byte, maxPiece)
		n := 0
		for n < len(piece) && e.end == nil {
			var more int
			more, e.end = e.from.Read(piece[n:])
			n += more
		}
		if n == 0 {
			continue
		}
		data, err := e.codec.EncodeData(e.ctx, piece[:n])
		if err == nil && len(data) > maxEncoded {
			err = fmt.Errorf("the codec returned %d bytes for %d bytes", len(data), n)
		}
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		e.left = append(binary.AppendUvarint(nil, uint64(len(data))), data...)
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

// decoder reads decoded pieces.
type decoder struct {
	ctx   context.Context
	codec Codec
	from  *bufio.Reader
	key   string
	left  []byte // of the last piece
}

func (d *decoder) Read(p []byte) (int, error) {
	for len(d.left) == 0 {
		size, err := binary.ReadUvarint(d.from)
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err == nil && size > maxEncoded {
			err = fmt.Errorf("invalid length %d of a piece", size)
		}
		if err != nil {
			return 0, fmt.Errorf("%s is not encoded: %w", d.key, err)
		}
		data := make([]byte, size)
		if _, err := io.ReadFull(d.from, data); err != nil {
			return 0, fmt.Errorf("%s is not encoded: %w", d.key, err)
		}
		if d.left, err = d.codec.DecodeData(d.ctx, data); err != nil {
			return 0, fmt.Errorf("%s: %w: %w", d.key, ErrUnavailable, err)
		}
	}
	n := copy(p, d.left)
	d.left = d.left[n:]
	return n, nil
}
