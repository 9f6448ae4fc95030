package redact

import (
	"bytes"
	"strings"
)

// lookAhead is how many bytes after an anchor decide whether it indicates a secret. The secret
// itself may be longer.
const lookAhead = 256

// class is a set of bytes.
type class [256]bool

func set(ranges string, more string) *class {
	var c class
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			c[b] = true
		}
	}
	for i := range len(more) {
		c[more[i]] = true
	}
	return &c
}

var (
	alnum    = set("azAZ09", "")
	upper    = set("AZ09", "")
	urlSafe  = set("azAZ09", "_-")
	word64   = set("azAZ09", "_-+/=")
	bearer   = set("azAZ09", "_-+/=.~")
	slackish = set("azAZ09", "-")
	between  = set("", " \t\"'\\:=>")
	noUser   = set("", " \t\r\n\"'<>/?#@:\\")
	noPass   = set("", " \t\r\n\"'<>/@")
)

// span returns the end of the run of bytes of the class that starts at a position.
func span(b []byte, at int, c *class) int {
	for at < len(b) && c[b[at]] {
		at++
	}
	return at
}

// isWordStart reports whether a word can start at a position. A letter after a backslash is part of
// an escape sequence, as in \nsk-….
func isWordStart(b []byte, at int) bool {
	return at == 0 || !alnum[b[at-1]] && b[at-1] != '_' || at > 1 && b[at-2] == '\\'
}

// key returns an anchor that matches prefix followed by at least atLeast bytes of class c.
func key(kind, prefix string, atLeast int, c *class) anchor {
	return anchor{text: prefix, kind: kind, match: func(b []byte, at int) (int, int) {
		if !isWordStart(b, at) {
			return 0, 0
		}
		end := span(b, at+len(prefix), c)
		if end-at-len(prefix) < atLeast {
			return 0, 0
		}
		return at, end
	}}
}

// shapes returns the anchors of all shapes of secrets.
func shapes() []anchor {
	list := []anchor{
		key("anthropic", "sk-ant-", 16, urlSafe),
		key("google", "AIza", 30, urlSafe),
		key("google", "ya29.", 20, urlSafe),
		key("google", "GOCSPX-", 20, urlSafe),
		key("github", "github_pat_", 30, urlSafe),
		key("gitlab", "glpat-", 20, urlSafe),
		key("stripe", "sk_live_", 16, alnum),
		key("stripe", "rk_live_", 16, alnum),
		key("npm", "npm_", 36, alnum),
		key("huggingface", "hf_", 30, alnum),
		key("groq", "gsk_", 40, alnum),
		{text: "sk-", kind: "openai", match: openAI},
		{text: "eyJ", kind: "jwt", match: jwt},
		{text: "-----BEGIN ", kind: "private_key", match: privateKey},
		{text: "://", kind: "password", match: urlPassword},
		{text: "earer ", kind: "bearer", match: bearerToken},
		{text: "EARER ", kind: "bearer", match: bearerToken},
		{text: "uthorization", kind: "bearer", match: authorization},
		{text: "UTHORIZATION", kind: "bearer", match: authorization},
	}
	for _, prefix := range []string{"AKIA", "ASIA", "ABIA", "ACCA"} {
		list = append(list, anchor{text: prefix, kind: "aws", match: awsID})
	}
	for _, c := range "pousr" {
		list = append(list, key("github", "gh"+string(c)+"_", 30, alnum))
	}
	for _, prefix := range []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"} {
		list = append(list, key("slack", prefix, 10, slackish))
	}
	for _, name := range credentials {
		words := strings.Split(name, "_")
		camel := words[0]
		for _, w := range words[1:] {
			camel += strings.ToUpper(w[:1]) + w[1:]
		}
		for _, form := range []string{
			name, strings.ToUpper(name), strings.ReplaceAll(name, "_", "-"), strings.Join(words, ""),
			camel, strings.ToUpper(camel[:1]) + camel[1:],
		} {
			list = append(list, anchor{text: form, kind: "credential", match: assigned(len(form))})
		}
	}
	return list
}

// credentials are names whose values are secret.
var credentials = []string{
	"api_key", "secret_key", "secret_access_key", "client_secret", "auth_token", "access_token", "refresh_token",
	"session_token", "private_key",
}

// isCredential reports whether the value of the JSON key is secret.
func isCredential(key string) bool {
	key = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
	if key == "authorization" || key == "proxyauthorization" || key == "xapikey" {
		return true
	}
	for _, name := range credentials {
		if strings.TrimPrefix(key, "aws") == strings.ReplaceAll(name, "_", "") {
			return true
		}
	}
	return false
}

// isRandom reports whether a word looks random: it contains 16 consecutive letters and digits, with
// at least one of each.
func isRandom(word []byte) bool {
	run, digits, letters := 0, 0, 0
	for _, c := range word {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case alnum[c]:
			letters++
		default:
			run, digits, letters = 0, 0, 0
			continue
		}
		if run++; run >= 16 && digits > 0 && letters > 0 {
			return true
		}
	}
	return false
}

// isGenerated reports whether a long random word of the class starts at a position.
func isGenerated(b []byte, at int, c *class) bool {
	limit := min(len(b), at+lookAhead)
	end := span(b[:limit], at, c)
	return end-at >= 20 && isRandom(b[at:end])
}

// openAI matches a key of OpenAI, or of another vendor with the same format.
func openAI(b []byte, at int) (int, int) {
	if !isWordStart(b, at) || !isGenerated(b, at+3, urlSafe) {
		return 0, 0
	}
	return at, span(b, at, urlSafe)
}

// awsID matches the id of an access key.
func awsID(b []byte, at int) (int, int) {
	end := span(b[:min(len(b), at+21)], at, upper)
	if !isWordStart(b, at) || end-at != 20 || end < len(b) && alnum[b[end]] {
		return 0, 0
	}
	return at, end
}

// jwt matches a JSON Web Token: three parts, of which two are JSON objects.
func jwt(b []byte, at int) (int, int) {
	if !isWordStart(b, at) || at > 0 && b[at-1] == '-' {
		return 0, 0
	}
	head := span(b, at, urlSafe)
	if head-at < 10 || index(b, head, head+4, ".eyJ") != head {
		return 0, 0
	}
	body := span(b, head+1, urlSafe)
	if body-head < 10 || body >= len(b) || b[body] != '.' {
		return 0, 0
	}
	return at, span(b, body+1, urlSafe)
}

// privateKey matches a PEM block of a private key. Without an end line it extends to the end of the
// text.
func privateKey(b []byte, at int) (int, int) {
	const dashes = "-----"
	title := index(b, at+len("-----BEGIN "), at+80, dashes)
	if title < 0 || !bytes.Contains(b[at:title], []byte("PRIVATE KEY")) {
		return 0, 0
	}
	end := index(b, title+len(dashes), len(b), "-----END ")
	if end < 0 {
		return at, len(b)
	}
	if last := index(b, end+len("-----END "), end+80, dashes); last >= 0 {
		return at, last + len(dashes)
	}
	return at, len(b)
}

// urlPassword matches the password of a URL.
func urlPassword(b []byte, at int) (int, int) {
	limit := min(len(b), at+lookAhead)
	from := at + len("://")
	for from < limit && !noUser[b[from]] {
		from++
	}
	if from >= limit || b[from] != ':' {
		return 0, 0
	}
	from++
	end := from
	for end < limit && !noPass[b[end]] {
		end++
	}
	if end == from || end >= limit || b[end] != '@' || strings.IndexByte("$*{<", b[from]) >= 0 {
		return 0, 0
	}
	return from, end
}

// bearerToken matches a token after "Bearer".
func bearerToken(b []byte, at int) (int, int) {
	from := at + len("earer ")
	if !isGenerated(b, from, bearer) {
		return 0, 0
	}
	return from, span(b, from, bearer)
}

// authorization matches the credentials in an Authorization header, after the scheme.
func authorization(b []byte, at int) (int, int) {
	name := at + len("uthorization")
	from := span(b, name, between)
	if from-name > 10 || bytes.IndexByte(b[name:from], ':') < 0 && bytes.IndexByte(b[name:from], '=') < 0 {
		return 0, 0
	}
	if isGenerated(b, from, bearer) {
		return from, span(b, from, bearer)
	}
	scheme := span(b[:min(len(b), from+lookAhead)], from, alnum)
	if scheme-from < 2 || scheme-from > 12 || scheme >= len(b) || b[scheme] != ' ' {
		return 0, 0
	}
	end := span(b, scheme+1, bearer)
	if end-scheme-1 < MinLength {
		return 0, 0
	}
	return scheme + 1, end
}

// assigned matches the value of a credential, given the length of its name.
func assigned(name int) func(b []byte, at int) (int, int) {
	return func(b []byte, at int) (int, int) {
		from := span(b, at+name, between)
		if from == at+name || from-at-name > 12 {
			return 0, 0
		}
		if !isGenerated(b, from, word64) {
			return 0, 0
		}
		return from, span(b, from, word64)
	}
}
