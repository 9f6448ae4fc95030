package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The answers to a line that is not a message (JSON-RPC 2.0, section 5.1). The ID is null because it is
// unknown.
const (
	parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the line is not JSON"}}` +
		"\n"
	invalidRequest = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the line is not a request"}}` + "\n"
)

// messageLines passes on lines of a client that are messages, and answers other lines itself, because they
// would end the connection of the SDK. Its goroutine ends with the client's stream, or at the next line after
// the reader was closed.
func messageLines(in io.ReadCloser, out io.WriteCloser) (io.ReadCloser, io.WriteCloser) {
	locked := &lockedWriter{WriteCloser: out}
	pr, pw := io.Pipe()
	go func() {
		defer in.Close()
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 1<<16), MaxMessage)
		for lines.Scan() {
			to, line := io.Writer(pw), append(bytes.TrimSpace(lines.Bytes()), '\n')
			if refusal := refusalOf(line); refusal != "" {
				to, line = locked, []byte(refusal)
			}
			if _, err := to.Write(line); err != nil {
				return
			}
		}
		pw.CloseWithError(lines.Err())
	}()
	return pr, locked
}

// refusalOf returns the answer to a line that is not a message, and "" for a message, a batch or an empty
// line.
func refusalOf(line []byte) string {
	if len(line) == 1 {
		return ""
	}
	if !json.Valid(line) {
		return parseError
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil && line[0] != '[' {
		return invalidRequest
	}
	return ""
}

// lockedWriter writes lines of two goroutines one after the other.
type lockedWriter struct {
	mu sync.Mutex
	io.WriteCloser
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
