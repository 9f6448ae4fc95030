package codec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"acescope/engine/ace"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

const (
	maxReason   = 200      // bytes of a server's message in a reason
	maxResponse = 64 << 20 // bytes
)

type httpError struct {
	code int
	body string // its beginning
}

func (e *httpError) Error() string {
	text := fmt.Sprintf("HTTP %d %s", e.code, http.StatusText(e.code))
	if e.body != "" {
		text += ": " + e.body
	}
	return text
}

// strictTransport accepts only responses with status 200 and bounds their size. Redirects are
// errors too, so that the secrets reach no other server.
type strictTransport struct{ base http.RoundTripper }

func (t strictTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	r, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if r.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 4*maxReason))
		_ = r.Body.Close()
		return nil, &httpError{r.StatusCode, string(body)}
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxResponse)
	return r, nil
}

// call sends payloads in one request; method is "encode" or "decode".
func (s *Server) call(ctx context.Context, method string, payloads []*commonpb.Payload) ([]*commonpb.Payload,
	error) {
	limit, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	remote := converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: s.endpoint, Client: s.http,
		ModifyRequest: func(req *http.Request) error {
			*req = *req.WithContext(limit)
			s.config.sign(req.Header)
			return nil
		},
	})
	if method == "encode" {
		return remote.Encode(payloads)
	}
	return remote.Decode(payloads)
}

// rejectsPayloads reports whether an error is about the payloads of the request rather than
// about the server, so that other payloads may be decoded.
func rejectsPayloads(err error) bool {
	r, ok := errors.AsType[*httpError](err)
	if !ok {
		return false
	}
	switch r.code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity,
		http.StatusRequestEntityTooLarge, http.StatusInternalServerError:
		return true
	}
	return false
}

// explain describes an error in one short line without secrets.
func (s *Server) explain(err error) string {
	var response *httpError
	var dns *net.DNSError
	var tooLarge *http.MaxBytesError
	var request *url.Error
	switch {
	case errors.As(err, &response):
		return s.sanitize(response.Error()) + advice(response.code)
	case errors.As(err, &tooLarge):
		return fmt.Sprintf("the response is larger than %d MB", maxResponse>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer within " + s.timeout.String()
	case errors.As(err, &dns):
		return "no such host: " + s.sanitize(dns.Name)
	case errors.As(err, &request):
		return s.sanitize(request.Err.Error())
	case strings.HasPrefix(err.Error(), "unable to unmarshal payloads"):
		return "the response is not a list of payloads"
	}
	return s.sanitize(err.Error())
}

func advice(code int) string {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return " (set --codec-auth, TEMPORAL_CODEC_AUTH or --codec-header)"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return " (check the endpoint; /decode and /encode are appended to it)"
	}
	return ""
}

// sanitize returns a text from a server as one short line without secrets.
func (s *Server) sanitize(text string) string {
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
	return ace.OneLine(text, maxReason)
}
