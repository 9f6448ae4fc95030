package redact

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// lookAhead is how many bytes after an anchor decide whether a secret looks random. The secret
// itself may be longer.
const lookAhead = 256

// shape describes the text of secrets of a kind.
type shape struct {
	kind    string
	anchors string // texts with which the pattern may start, separated by |
	pattern string // its first group is the secret
	start   start
	random  bool   // the secret must look random
	after   string // text that must be among the lookAhead bytes before the anchor
	// atLeast, if positive, makes the anchors names of variables. The secret is a value of at least that
	// length that is assigned to the name.
	atLeast int
}

// start is where a shape may start.
type start int

const (
	anywhere  start = iota
	word            // where a word starts
	separated       // where a word starts, but not after a dash
)

// Parts of patterns: characters of tokens and of encoded values, and what is between a name and
// its value.
const (
	token  = `[\w.~+/=-]`
	base64 = `[\w+/=-]`
	to     = `[ \t"'\\:=>]`
)

// shapesOfSecrets returns the shapes of keys, tokens, private keys and passwords of URLs, and of the
// values of credentials.
func shapesOfSecrets() []shape {
	const header = `(?i)uthorization[ \t"'\\>]{0,10}[:=]` + to + `{0,10}`
	list := []shape{
		{"anthropic", "sk-ant-", `(sk-ant-[\w-]{16,})`, word, false, "", 0},
		{"openai", "sk-", `(sk-[\w-]{20,})`, word, true, "", 0}, // or of another vendor with the same format
		{"google", "AIza", `(AIza[\w-]{30,})`, word, false, "", 0},
		{"google", "ya29.", `(ya29\.[\w-]{20,})`, word, false, "", 0},
		{"google", "GOCSPX-", `(GOCSPX-[\w-]{20,})`, word, false, "", 0},
		{"github", "github_pat_", `(github_pat_[\w-]{30,})`, word, false, "", 0},
		{"github", "ghp_|gho_|ghu_|ghs_|ghr_", `(gh._[A-Za-z0-9]{30,})`, word, false, "", 0},
		{"gitlab", "glpat-|glptt-|gldt-|glrt-|glcbt-|glsoat-", `(gl[a-z]+-[\w.-]{20,})`, word, false, "", 0},
		{"stripe", "sk_live_|rk_live_|sk_test_|rk_test_", `(.k_[a-z]{4}_[A-Za-z0-9]{16,})`, word, false, "",
			0},
		{"sendgrid", "SG.", `(SG\.[\w-]{16,}\.[\w-]{16,})`, word, false, "", 0},
		{"twilio", "SK", `(SK[0-9a-f]{32})(?:[^\w]|$)`, word, false, "", 0},
		{"telegram", ":AA", `:(AA[\w-]{33})(?:[^\w-]|$)`, anywhere, true, "", 0},
		{"webhook", "hooks.slack.com/|/api/webhooks/", `[a-z.]*/(?:[a-z]+/){1,2}([\w/-]{20,})`, anywhere,
			true, "", 0},
		{"azure", "Q~", `(Q~[\w.~-]{31,})(?:[^\w.~-]|$)`, anywhere, true, "", 0}, // of an application
		// of vendors whose keys begin with their own mark
		{"token", "pypi-|dop_v1_|doo_v1_|dor_v1_|dapi|shpat_|shpss_|shpca_|shppa_|whsec_|xkeysib-|" +
			"lin_api_|ntn_|figd_|ATATT3|PMAK-|dp.pt.|dp.st.|hvs.|hvb.|glsa_|glc_|NRAK-|AGE-SECRET-KEY-|" +
			"sbp_|tskey-|r8_|pplx-|xai-|rubygems_|dckr_pat_|dckr_oat_|pscale_pw_|pscale_tkn_|nfp_|" +
			"sntrys_|sntryu_|lsv2_pt_|lsv2_sk_|pat-na1-|pat-eu1-|sq0atp-|sq0csp-|phx_|tvly-|nvapi-",
			`([\w.-]{24,})`, word, true, "", 0},
		{"npm", "npm_", `(npm_[A-Za-z0-9]{36,})`, word, false, "", 0},
		{"huggingface", "hf_", `(hf_[A-Za-z0-9]{30,})`, word, false, "", 0},
		{"groq", "gsk_", `(gsk_[A-Za-z0-9]{40,})`, word, false, "", 0},
		{"slack", "xoxb-|xoxp-|xoxa-|xoxr-|xoxs-|xoxe-|xapp-", `(x...-[A-Za-z0-9-]{10,})`, word, false, "",
			0},
		{"aws", "AKIA|ASIA|ABIA|ACCA", `([A-Z0-9]{20})(?:[^A-Za-z0-9]|$)`, word, false, "", 0},
		{"jwt", "eyJ", `(eyJ[\w-]{7,}\.eyJ[\w-]{6,}\.[\w-]*)`, separated, false, "", 0},
		{"private_key", "-----BEGIN ", // without an end line, it extends to the end of the text
			`(-----BEGIN [^-]{0,50}PRIVATE KEY[^-]{0,50}-----(?s:.*?-----END [^-]{0,70}-----|.*))`, anywhere,
			false, "", 0},
		{"password", "://",
			`://[^ \t\r\n"'<>/?#@:\\]*:([^ \t\r\n"'<>/@$*{][^ \t\r\n"'<>/@]*)@`, anywhere, false, "", 0},
		{"bearer", "earer |EARER ", `(?i)earer (` + token + `{20,})`, anywhere, true, "", 0},
		{"bearer", "uthorization|UTHORIZATION", header + `(` + token + `{20,})`, anywhere, true, "", 0},
		{"bearer", "uthorization|UTHORIZATION",
			header + `[A-Za-z0-9]{2,12} (` + token + `{8,})`, anywhere, false, "", 0},
		{"password", "-u|--user|--proxy-user",
			`(?:-u|--(?:proxy-)?user)[ =]?\\?["']?[^\s:"'\\/]+:([^\s"'\\$<{(\[/][^\s"'\\]{3,})`,
			anywhere, false, "curl", 0},
		{"cookie", "ookie|OOKIE",
			`(?i)ookie[ \t"'\\>]{0,10}[:= ]` + to + `{0,10}([\w.-]+=[^\r\n"'\\$<{][^\r\n"'\\]{7,})`, anywhere,
			false, "", 0},
		{"cookie", "sessionid=|SESSIONID=|SESSID=|connect.sid=", `[A-Za-z.]+=([\w%.-]{16,})`, anywhere, false,
			"", 0},
		{"signature", "?sig=|&sig=|Signature=", `[?&A-Za-z]+=([\w%+/=~-]{20,})`, anywhere, false, "", 0},
		{kind: "bearer", anchors: "uthorization|UTHORIZATION", atLeast: MinLength},
		{kind: "password", anchors: "_PASS|_pass|&pass|?pass", atLeast: minPassword},
		{kind: "credential", anchors: "_TOKEN|_SECRET|_secret", atLeast: MinLength},
		{kind: "password", anchors: "assword|ASSWORD|asswd|ASSWD|assphrase|ASSPHRASE|pwd|Pwd|PWD",
			atLeast: minPassword},
	}
	for _, name := range credentials {
		words := strings.Split(name, "_")
		camel := words[0]
		for _, w := range words[1:] {
			camel += strings.ToUpper(w[:1]) + w[1:]
		}
		spellings := []string{name, strings.ToUpper(name), strings.Join(words, "-"), strings.Join(words, ""),
			camel, strings.ToUpper(camel[:1]) + camel[1:]}
		anchors := strings.Join(spellings, "|")
		list = append(list, shape{"credential", anchors,
			`(?i)` + strings.Join(words, "[_-]?") + to + `{1,12}(` + base64 + `{20,})`, anywhere, true, "",
			0},
			shape{kind: "credential", anchors: anchors, atLeast: MinLength})
	}
	return list
}

// shapeAnchors returns the anchors of all shapes.
var shapeAnchors = sync.OnceValue(func() (list []anchor) {
	for _, s := range shapesOfSecrets() {
		match := s.matcher()
		for text := range strings.SplitSeq(s.anchors, "|") {
			if s.atLeast > 0 {
				match = func(b []byte, at int) (from, to int) { return assigned(b, at+len(text), s.atLeast) }
			}
			list = append(list, anchor{text: text, kind: s.kind, match: match,
				spaced: s.start == anywhere && text != "://"})
		}
	}
	return list
})

// matcher returns the function of an anchor that finds the secret.
func (s shape) matcher() func(b []byte, at int) (from, to int) {
	pattern := regexp.MustCompile(`^(?:` + s.pattern + `)`)
	return func(b []byte, at int) (from, to int) {
		if s.start != anywhere && !isWordStart(b, at) || s.start == separated && at > 0 && b[at-1] == '-' {
			return 0, 0
		}
		if s.after != "" && !bytes.Contains(b[max(at-lookAhead, 0):at], []byte(s.after)) {
			return 0, 0
		}
		text := b[at:]
		if s.random {
			text = text[:min(len(text), lookAhead)]
			if !isRandom(text) { // cheaper than the pattern
				return 0, 0
			}
		}
		m := pattern.FindSubmatchIndex(text)
		if m == nil || s.random && !isRandom(text[m[2]:m[3]]) {
			return 0, 0
		}
		if m[3] == lookAhead {
			m = pattern.FindSubmatchIndex(b[at:])
		}
		return at + m[2], at + m[3]
	}
}

// isWordStart reports whether a word can start at a position. A letter after a backslash is part of
// an escape sequence, as in \nsk-….
func isWordStart(b []byte, at int) bool {
	return at == 0 || !isAlnum(b[at-1]) && b[at-1] != '_' || at > 1 && b[at-2] == '\\'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlnum(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isRandom reports whether a text looks random: it contains 16 consecutive letters and digits, with
// at least one of each.
func isRandom(text []byte) bool {
	run, digits := 0, 0
	for _, c := range text {
		switch {
		case isDigit(c):
			run++
			digits++
		case isAlnum(c):
			run++
		default:
			run, digits = 0, 0
		}
		if run >= 16 && digits > 0 && digits < run {
			return true
		}
	}
	return false
}

// credentials are names whose values are secret.
var credentials = []string{
	"api_key", "secret_key", "secret_access_key", "client_secret", "auth_token", "access_token",
	"refresh_token",
	"session_token", "private_key", "account_key", "shared_access_key", "subscription_key",
}

// secretOf returns the kind of the secret that is the value of a JSON key, or "".
func secretOf(name string, value []byte) string {
	if name == "" {
		return ""
	}
	key := strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
	for _, suffix := range []string{"password", "passwd", "passphrase", "_pass", "-pass"} {
		if (strings.HasSuffix(key, suffix) || strings.HasSuffix(strings.ToLower(name), suffix)) &&
			len(value) >= minPassword && !isPlaceholder(value) {
			return "password"
		}
	}
	variable := strings.Contains(name, "_") && name == strings.ToUpper(name) && SecretName(name)
	is := key == "authorization" || key == "proxyauthorization" || key == "xapikey" || variable ||
		strings.HasSuffix(key, "cookie") && bytes.IndexByte(value, '=') > 0
	for _, c := range credentials {
		is = is || strings.TrimPrefix(key, "aws") == strings.ReplaceAll(c, "_", "")
	}
	if value = value[schemeEnd(value):]; is && len(value) >= MinLength && !isPlaceholder(value) {
		return "credential"
	}
	return ""
}
