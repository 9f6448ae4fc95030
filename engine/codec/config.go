package codec

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Timeout bounds one request to a codec server.
const Timeout = 5 * time.Second

// maxAnswer bounds the answer of a codec server, in bytes.
const maxAnswer = 64 << 20

// Config says where a codec server is and how to be let in. It is given as the temporal
// command takes it.
type Config struct {
	Endpoint  string            // http or https; {namespace} stands for the namespace
	Auth      string            // the header Authorization; a secret
	Headers   map[string]string // further headers; secrets too
	Namespace string            // sent as X-Namespace
	Timeout   time.Duration     // of one request, 0 for [Timeout]
}

// CheckEndpoint tells what is wrong with an endpoint, without repeating a password in it.
func CheckEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return fmt.Errorf("it is no URL: write http://host:port or https://host/path")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("%q is no address of a codec server: write http://host:port or https://host/path", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("an endpoint has no query and no fragment: /encode and /decode are added to it")
	}
	return nil
}

// place is the endpoint with the namespace in it, and a name for it that can be shown.
func (c Config) place() (endpoint, name string, err error) {
	endpoint = strings.TrimRight(strings.ReplaceAll(c.Endpoint, "{namespace}", url.PathEscape(c.Namespace)), "/")
	if err := CheckEndpoint(endpoint); err != nil {
		return "", "", fmt.Errorf("codec endpoint: %w", err)
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return "", "", fmt.Errorf("codec endpoint: it is no URL")
	}
	u.User = nil
	return endpoint, u.String(), nil
}

// Shown is the endpoint as it can be shown: without a password.
func (c Config) Shown() string {
	if c.Endpoint == "" {
		return ""
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return "(no URL)"
	}
	u.User = nil
	return strings.NewReplacer("%7B", "{", "%7D", "}").Replace(u.String())
}

// sign puts the headers on a request.
func (c Config) sign(h http.Header) {
	h.Set("X-Namespace", c.Namespace)
	for name, value := range c.Headers {
		h.Set(name, value)
	}
	if c.Auth != "" {
		h.Set("Authorization", c.Auth)
	}
}

// secrets lists what must not be shown though a server may repeat it.
func (c Config) secrets() []string {
	var all []string
	add := func(s string) {
		all = append(all, s)
		if _, token, ok := strings.Cut(s, " "); ok {
			all = append(all, token) // of "Bearer token"
		}
	}
	add(c.Auth)
	for _, v := range c.Headers {
		add(v)
	}
	if u, err := url.Parse(c.Endpoint); err == nil && u.User != nil {
		password, _ := u.User.Password()
		add(password)
	}
	return all
}
