// Package llmtest is a fake model server for tests. It implements the streaming Messages API
// of Anthropic (/v1/messages) and the streaming Chat Completions API of OpenAI
// (/v1/chat/completions), including all kinds of failures, and the embeddings of the latter (/v1/embeddings).
package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// Request is a request of an API. The texts of embeddings are its messages.
type Request struct {
	API      string // anthropic, openai or embeddings
	Model    string
	Key      string
	System   string
	Messages []Message
	Tools    []string
	Cached   bool // a part of the system prompt is marked for caching
	Raw      []byte
}

// Message is one message of a conversation. Results are the results of the client's tools.
type Message struct {
	Role, Text string
	Calls      []Call
	Results    []string
}

// Last returns the text of the last message, with results.
func (r Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	m := r.Messages[len(r.Messages)-1]
	return strings.Join(append([]string{m.Text}, m.Results...), "\n")
}

// Call is a tool call.
type Call struct {
	ID, Name, Args string
}

// Reply is the server's reaction. The zero value is an empty answer.
type Reply struct {
	Text  string
	Calls []Call
	Stop  string // end (or ""), length, refusal
	// Status other than 0 and 200 sends an error with Type and Text.
	Status     int
	Type       string
	RetryAfter string
	// Break closes the connection in the middle of the text; ErrorInside sends an error event
	// of that type there.
	Break       bool
	ErrorInside string
	// Hang sends the first half of the text and then waits until the client disconnects.
	Hang bool
	// Body is sent as HTML instead of an answer.
	Body string
	// Vectors are the embeddings.
	Vectors [][]float64
	// Tokens of prompt, answer and cache. If In or Out is 0, words are counted.
	In, Out, Cached int
	Pause           time.Duration // between pieces of the text
}

// Server is a fake model server.
type Server struct {
	*httptest.Server
	// Left is closed when a client disconnects from a hanging answer.
	Left   chan struct{}
	once   sync.Once
	answer func(Request) Reply
	mu     sync.Mutex
	seen   []Request
}

// New starts a server that replies with the result of the function, which is called
// concurrently.
func New(answer func(Request) Reply) *Server {
	s := &Server{answer: answer, Left: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Script returns a function that gives one reply after the other and repeats the last.
func Script(replies ...Reply) func(Request) Reply {
	var mu sync.Mutex
	n := 0
	return func(Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		r := replies[min(n, len(replies)-1)]
		n++
		return r
	}
}

// Seen returns the requests so far.
func (s *Server) Seen() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var q Request
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		q = readAnthropic(gjson.ParseBytes(body))
		q.Key = r.Header.Get("X-Api-Key")
	case r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions":
		q = readOpenAI(gjson.ParseBytes(body))
		q.Key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	case r.Method == http.MethodPost && r.URL.Path == "/v1/embeddings":
		q = readEmbeddings(gjson.ParseBytes(body))
	default:
		http.NotFound(w, r)
		return
	}
	q.Raw = body
	s.mu.Lock()
	s.seen = append(s.seen, q)
	s.mu.Unlock()
	s.send(w, r, q, s.answer(q))
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, q Request, a Reply) {
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", a.RetryAfter)
	}
	switch {
	case a.Body != "":
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, a.Body)
		return
	case a.Status != 0 && a.Status != http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.Status)
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": map[string]any{"type": a.Type,
			"code": a.Type, "message": a.Text}})
		return
	}
	if q.API == "embeddings" {
		sendEmbeddings(w, q, a)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	st := &stream{w: w, r: r}
	if q.API == "anthropic" {
		sendAnthropic(st, q, a)
	} else {
		sendOpenAI(st, q, a)
	}
	if st.hung {
		s.once.Do(func() { close(s.Left) })
	}
}

// stream writes server-sent events.
type stream struct {
	w    http.ResponseWriter
	r    *http.Request
	hung bool
}

func (s *stream) event(name string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", data)
	_ = http.NewResponseController(s.w).Flush()
}

// text sends a text in pieces. It reports whether the answer continues after it.
func (s *stream) text(a Reply, piece func(string), inside func(kind string)) bool {
	runes := []rune(a.Text)
	size := max(12, len(runes)/1000)
	for i := 0; i < len(runes) || i == 0; i += size {
		if i >= len(runes)/2 {
			switch {
			case a.Break:
				panic(http.ErrAbortHandler)
			case a.ErrorInside != "":
				inside(a.ErrorInside)
				return false
			case a.Hang:
				<-s.r.Context().Done()
				s.hung = true
				return false
			}
		}
		if len(runes) > 0 {
			piece(string(runes[i:min(i+size, len(runes))]))
		}
		if a.Pause > 0 {
			select {
			case <-time.After(a.Pause):
			case <-s.r.Context().Done():
				return false
			}
		}
	}
	return true
}

// words approximates the number of tokens of a text.
func words(s string) int { return len(strings.Fields(s)) + 1 }

func tokens(q Request, a Reply) (in, out int) {
	in, out = a.In, a.Out
	in = cmp.Or(in, words(string(q.Raw)))
	out = cmp.Or(out, words(a.Text))
	return in, out
}
