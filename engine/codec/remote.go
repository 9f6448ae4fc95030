package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// maxReason bounds what is repeated of what a server says, in bytes.
const maxReason = 200

// refusal is an answer other than 200.
type refusal struct {
	code int
	text string // begin of the body
}

func (r *refusal) Error() string {
	said := fmt.Sprintf("HTTP %d %s", r.code, http.StatusText(r.code))
	if r.text != "" {
		said += ": " + r.text
	}
	return said
}

// answers lets through what a codec server may answer: 200, of a bounded size. Everything
// else is an error, redirections too: the secrets go to no other server.
type answers struct{ base http.RoundTripper }

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	r, err := a.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 4*maxReason))
		_ = r.Body.Close()
		return nil, &refusal{r.StatusCode, string(body)}
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxAnswer)
	return r, nil
}

// call sends payloads to the server in one request.
func (s *Server) call(ctx context.Context, what string, payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	limit, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	remote := converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: s.endpoint, Client: s.http,
		ModifyRequest: func(req *http.Request) error {
			*req = *req.WithContext(limit)
			s.config.sign(req.Header)
			return nil
		}})
	s.count(func(st *Status) { st.Requests++ })
	if what == "encode" {
		return remote.Encode(payloads)
	}
	return remote.Decode(payloads)
}

// blames tells whether an answer is about the payloads that were sent rather than about
// the server: others may well be decoded.
func blames(err error) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	return slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge,
		http.StatusInternalServerError}, r.code)
}

// plain says what went wrong in one short line without secrets.
func (s *Server) plain(err error) string {
	var r *refusal
	var host *net.DNSError
	var large *http.MaxBytesError
	var at *url.Error
	switch {
	case errors.As(err, &r):
		return s.tidy(r.Error()) + advice(r.code)
	case errors.As(err, &large):
		return fmt.Sprintf("its answer is larger than %d MB", maxAnswer>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + s.timeout.String()
	case errors.As(err, &host):
		return "no such host: " + s.tidy(host.Name)
	case errors.As(err, &at):
		return s.tidy(at.Err.Error())
	case strings.HasPrefix(err.Error(), "unable to unmarshal payloads"):
		return "its answer is not a list of payloads"
	}
	return s.tidy(err.Error())
}

func advice(code int) string {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return " (give what lets you in: --codec-auth, TEMPORAL_CODEC_AUTH or --codec-header)"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return " (is the endpoint right? /decode and /encode are added to it)"
	}
	return ""
}

// tidy is text from a server as one short line, without the secrets it may repeat.
func (s *Server) tidy(text string) string {
	for _, secret := range s.config.secrets() {
		if len(secret) > 2 {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}
