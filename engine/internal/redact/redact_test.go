package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

// madeUp are texts with the shape of secrets.
var madeUp = map[string]string{
	"anthropic":   "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789_-AA",
	"openai":      "sk-proj-A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6",
	"aws":         "AKIAQ7XJ4K2M5N8P3R6T",
	"github":      "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8",
	"google":      "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
	"slack":       "xoxb-123456789012-abcdefGHIJKL",
	"gitlab":      "glpat-A1b2C3d4E5f6G7h8I9j0",
	"stripe":      "sk_live_A1b2C3d4E5f6G7h8",
	"npm":         "npm_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8",
	"huggingface": "hf_AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh",
	"jwt":         "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	"sendgrid":    "SG.A1b2C3d4E5f6G7h8I9j0Kl.A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S9t0Uv1",
	"twilio":      "SK0123456789abcdef0123456789abcdef",
	"token":       "dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef",
	"private_key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nabc/+=\n-----END RSA PRIVATE KEY-----",
}

func TestShapes(t *testing.T) {
	r := New()
	for kind, secret := range madeUp {
		for _, around := range []string{"%", "key: %", "\"%\"", "a\n%\nb", "(%)", "x=%;", "%,%", "'%'"} {
			text := strings.ReplaceAll(around, "%", secret)
			want := strings.ReplaceAll(around, "%", "[redacted:"+kind+"]")
			if got := r.String(text); got != want {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
			if got := r.String(want); got != want {
				t.Errorf("again: %q", got)
			}
			line, err := json.Marshal(map[string]any{"type": "x", "content": []string{text, "other"},
				"n": 12.5})
			if err != nil {
				t.Fatal(err)
			}
			out := r.Line(line)
			if !json.Valid(out) || strings.Contains(string(out), secret[:20]) ||
				!strings.Contains(string(out), "[redacted:"+kind+"]") {
				t.Errorf("%s: %s", line, out)
			}
		}
	}
}

func TestContexts(t *testing.T) {
	r := New()
	for text, want := range map[string]string{
		"Authorization: Bearer abc.def-123":                                       "Authorization: Bearer [redacted:bearer]",
		"authorization: Basic dXNlcjpwYXNz":                                       "authorization: Basic [redacted:bearer]",
		`{\"Authorization\": \"Bearer abcdef12345\"}`:                             `{\"Authorization\": \"Bearer [redacted:bearer]\"}`,
		"curl -H 'AUTHORIZATION: token 0123456789abcdef'":                         "curl -H 'AUTHORIZATION: token [redacted:bearer]'",
		"bearer A1b2C3d4E5f6G7h8I9j0":                                             "bearer [redacted:bearer]",
		"postgres://bob:hunter2@db/x":                                             "postgres://bob:[redacted:password]@db/x",
		"https://:tok3n@host and redis://u:p%40ss@h:1":                            "https://:[redacted:password]@host and redis://u:[redacted:password]@h:1",
		"aws_secret_access_key = wJalrXUtnFEMI7K7MDENG/bPxRfiCYEXAMPLE":           "aws_secret_access_key = [redacted:credential]",
		`export API_KEY="0a1b2c3d4e5f60718293"`:                                   `export API_KEY="[redacted:credential]"`,
		`"clientSecret":"0a1b2c3d4e5f60718293a"`:                                  `"clientSecret":"[redacted:credential]"`,
		"-----BEGIN PRIVATE KEY-----\nMIIE half":                                  "[redacted:private_key]",
		`-----BEGIN EC PRIVATE KEY-----\nMII\n-----END EC PRIVATE KEY-----\nrest`: `[redacted:private_key]\nrest`,
		`one\nsk-ant-api03-AbCdEfGhIjKlMnOp`:                                      `one\n[redacted:anthropic]`,
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"mysql --password=hunter2 -h db":                                 "mysql --password=[redacted:password] -h db",
		"password=correcthorse&user=bob":                                 "password=[redacted:password]&user=bob",
		"DB_PASSWORD: hunter2\nuser: bob":                                "DB_PASSWORD: [redacted:password]\nuser: bob",
		`Server=db;Pwd=tr0ub4dor;`:                                       `Server=db;Pwd=[redacted:password];`,
		`{"user":"bob","password":"correct horse","x":1}`:                `{"user":"bob","password":"[redacted:password]","x":1}`,
		`sent {"api_key":"hunter2hunter2"} to it`:                        `sent {"api_key":"[redacted:credential]"} to it`,
		`sent {\"api_key\": \"hunter2hunter2\"} to it`:                   `sent {\"api_key\": \"[redacted:credential]\"} to it`,
		`apiKey: 'correct horse battery'`:                                `apiKey: '[redacted:credential]'`,
		"GET /?api_key=hunter2hunter2&x=1":                               "GET /?api_key=[redacted:credential]&x=1",
		"sent Authorization: hunter2hunter2 to it":                       "sent Authorization: [redacted:bearer] to it",
		`h = {"Authorization": "Token hunterhunter"}`:                    `h = {"Authorization": "Token [redacted:bearer]"}`,
		"secret key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY":            "secret key [redacted:aws]",
		"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY": "AWS_SECRET_ACCESS_KEY=[redacted:credential]",
		`one\nz9Kq+Xb3Lm7Vt2Rc5Yw8Nf4Hd6Jg1Ps0Ae/Qu3Ti`:                  `one\n[redacted:aws]`,
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=A1b2C3d4E5f6G7h8I9j0/w+x==;EndpointSuffix=x": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=[redacted:credential];EndpointSuffix=x",
		"Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=A1b2C3d4E5f6G7h8I9j0=":                     "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=[redacted:credential]",
		"https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=A1b2C3d4%2BE5f6G7h8%3D&se=2027":             "https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=[redacted:signature]&se=2027",
		"x?X-Amz-Expires=60&X-Amz-Signature=0123456789abcdef0123456789abcdef&x=1":                             "x?X-Amz-Expires=60&X-Amz-Signature=[redacted:signature]&x=1",
		"Cookie: session=A1b2C3d4E5f6; theme=dark\nAccept: x":                                                 "Cookie: [redacted:cookie]\nAccept: x",
		"set-cookie: sid=0123456789; Path=/; HttpOnly":                                                        "set-cookie: [redacted:cookie]",
		"curl -b 'x' 'http://h/?JSESSIONID=0123456789ABCDEF'":                                                 "curl -b 'x' 'http://h/?JSESSIONID=[redacted:cookie]'",
		"export DB_PASS=hunter2":                                                       "export DB_PASS=[redacted:password]",
		`db_pass: "correct horse"`:                                                     `db_pass: "[redacted:password]"`,
		"GET /?user=bob&pass=hunter2&x=1":                                              "GET /?user=bob&pass=[redacted:password]&x=1",
		"export CI_TOKEN=hunter2hunter2":                                               "export CI_TOKEN=[redacted:credential]",
		"webhook_secret: 'hunter2hunter2'":                                             "webhook_secret: '[redacted:credential]'",
		"<user>bob</user><password>a b c</password>":                                   "<user>bob</user><password>[redacted:password]</password>",
		"<ApiKey>hunterhunter</ApiKey>":                                                "<ApiKey>[redacted:credential]</ApiKey>",
		"curl -u bob:hunter2 http://h":                                                 "curl -u bob:[redacted:password] http://h",
		`curl -s --user "bob:hunter2" http://h`:                                        `curl -s --user "bob:[redacted:password]" http://h`,
		"curl -sSubob:hunter2 http://h":                                                "curl -sSubob:hunter2 http://h", // not found
		"hooks.slack.com/services/T0001/B0001/A1b2C3d4E5f6G7h8I9j0":                    "hooks.slack.com/services/[redacted:webhook]",
		"https://discord.com/api/webhooks/123456789012345678/A1b2C3d4E5f6G7h8I9j0_K-1": "https://discord.com/api/webhooks/[redacted:webhook]",
		"bot 123456789:AAF1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q":                            "bot 123456789:[redacted:telegram]",
		"id abc8Q~A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p":                                     "id abc8[redacted:azure]",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		line, err := json.Marshal([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal(r.Line(line), &got); err != nil || got[0] != want {
			t.Errorf("%s: %q, %v", line, got, err)
		}
		if got := r.String(want); got != want {
			t.Errorf("again: %q", got)
		}
	}
	line := `{"headers":{"x-api-key":"0a1b2c3d4e5f60718293","Authorization" : "0a1b2c3d4e5f60718293"},"api_key":"short","max_tokens":5}`
	want := `{"headers":{"x-api-key":"[redacted:credential]","Authorization" : "[redacted:credential]"},"api_key":"short","max_tokens":5}`
	if got := string(r.Line([]byte(line))); got != want {
		t.Errorf("%s", got)
	}
	line = `{"env":{"CI_TOKEN":"hunterhunter","db_pass":"hunter2","SORT":"asc"},"headers":{"Set-Cookie":"sid=01234567"}}`
	want = `{"env":{"CI_TOKEN":"[redacted:credential]","db_pass":"[redacted:password]","SORT":"asc"},` +
		`"headers":{"Set-Cookie":"[redacted:credential]"}}`
	if got := string(r.Line([]byte(line))); got != want {
		t.Errorf("%s", got)
	}
}

// TestOrdinary checks that ordinary text is unchanged.
func TestOrdinary(t *testing.T) {
	r := New(Environ([]string{"API_KEY=short", "MAX_TOKENS=32000000", "TOKEN_FILE=/run/secrets/token",
		"GOOGLE_APPLICATION_CREDENTIALS=/home/ann/key.json", "PWD=/home/ann/work"})...)
	for _, text := range []string{
		"", "the task-risk-based assessment of sk-learn pipelines",
		"import sklearn; sk-learn-contrib-something-very-long-name",
		"git commit 3f2504e04f8911d39a0c0305e82c3301aabbccdd", "uuid 11111111-1111-4111-8111-111111111111",
		"sha256:9f86d081884c7d659a2feaa0c55ad015",
		"eyJust a word", "eyJhbGciOiJIUzI1NiJ9 alone", "see https://example.com/a:b@c and user@host:path",
		"http://localhost:8080/x@y",
		"https://user:$PASSWORD@host https://user:<password>@host", "Authorization: Bearer $TOKEN",
		"authorization is required for this resource",
		"the bearer of this letter", "Bearer authentication", "AKIA is a prefix",
		"AKIAIOSFODNN7EXAMPLETOOLONG", "MAKIAIOSFODNN7EXAMPLE",
		"-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----",
		"api_key = os.environ[\"ANTHROPIC_API_KEY\"]", "access_token: str | None = None",
		"secret_key=config.get(\"secret_key\")", "ghp_short", "xoxb-", "sk-", "sk-ant-", "AIza", "://", ":@",
		"eyJ", "key_press npm_install hf_hub",
		"refresh_token_expires_in_seconds_from_now = 3600", "/home/ann/key.json",
		"the private_key field holds a path like /etc/ssl/private/server.pem",
		"def login(user, password: str, token=None)", "password=config.get(1)",
		"connect(password=db_password)", "password: required",
		`{"type": "object", "password": {"type": "string"}, "apiKey": "<your key>"}`, `"password": "string"`,
		"forgot your password? see passwords: all",
		"PWD=/home/ann/work", "/Users/JohnDoe2/MyProjectName/SourceFiles",
		"TestThatForksKeepTheirOwnPlaybookAfter2Runs", "api_key=$API_KEY password=${PASSWORD}",
		"da39a3ee5e6b4b0d3255bfef95601890afd80709", "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
		`"Authorization": "Bearer ${TOKEN}"`,
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
		"scheme://user@host:80/", "a \\ b \\u0041 \\/",
		"--- PASS: TestX (0.01s)", "tests_pass = many, bypass=1234", "the cookie: name=value",
		"cookies = load(path=1)",
		"Cookie: session=$SESSION; x=1", "?sig=short &sig=", "signature=abc", "docker run -u 1000:1000 x",
		"curl -u $USER:$PASS --url https://host:8080 -H 'User-Agent: a:b'", "curl --user-agent 'a b:cdefgh'",
		"<password>$PASSWORD</password><password></password>", "List<password> x", "SK is 32 digits",
		"SG.x.y",
		"/api/webhooks/of-a-service-that-is-long", "session_id 11111111-1111-4111-8111-111111111111",
		"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
		"next_page_token: abc", "client_secret", "AccountName=a;AccountKey=<key>",
		"dapi, r8_ and hvs. are marks",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		line, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Line(line)); got != string(line) {
			t.Errorf("%s became %s", line, got)
		}
	}
}

func TestKnown(t *testing.T) {
	r := New(Secret{"DB_PASSWORD", "p\"a\\s<s>/wörd\n1"}, Secret{"LONG", "correct horse battery staple"},
		Secret{"", "abcdefgh"}, Secret{"SHORT", "abc"}, Secret{"BLANK", "            "})
	if got := r.String("x correct horse battery staple, abcdefgh abc"); got != "x [redacted:LONG], [redacted:secret] abc" {
		t.Error(got)
	}
	inner, err := json.Marshal(map[string]string{"p": "p\"a\\s<s>/wörd\n1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"a":"p\"a\\s<s>/wörd\n1"}`, `{"a":"p\"a\\s\u003cs\u003e\/w\u00f6rd\n1"}`,
		`{"a":"\u0070\u0022a\u005cs<s>/wörd\u000a1"}`,
		`{"p\"a\\s<s>/wörd\n1":true}`, `["p\"a\\s<s>/wörd\n1","ok \u0041 \/"]`, `"p\"a\\s<s>/wörd\n1"`,
	} {
		got := string(r.Line([]byte(line)))
		if !json.Valid([]byte(got)) || !strings.Contains(got, "[redacted:DB_PASSWORD]") ||
			strings.Contains(got, "rd\\n1") {
			t.Errorf("%s: %s", line, got)
		}
	}
	const clean = `["x","ok \u0041 \/",1e5, {"a":null}]`
	if got := string(r.Line([]byte(clean))); got != clean {
		t.Errorf("text without a secret was changed: %s", got)
	}
	outer, err := json.Marshal(map[string]string{"output": "it says " + string(inner)})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Line(outer); !json.Valid(got) || !strings.Contains(string(got), "[redacted:DB_PASSWORD]") {
		t.Errorf("JSON within JSON: %s", got)
	}
	if got := string(r.Line([]byte(`{"broken":"abcdefgh`))); got != `{"broken":"[redacted:secret]` {
		t.Errorf("not JSON: %s", got)
	}
}

// TestOverlap checks that overlapping secrets are removed completely.
func TestOverlap(t *testing.T) {
	r := New(Secret{"A", "abcdefghijkl"}, Secret{"B", "ijklmnopqrst"}, Secret{"C", "efghij12"},
		Secret{"D", "abcdefghijklmnop"})
	for text, want := range map[string]string{
		"-abcdefghijklmnopqrst-":   "-[redacted:D]-",
		"abcdefghijkl":             "[redacted:A]",
		"abcdefghijklijklmnopqrst": "[redacted:A][redacted:B]",
		"abcdefghij12":             "abcd[redacted:C]",
	} {
		if got := r.String(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTruncated checks that parts of known secrets at the ends of a truncated text are removed.
func TestTruncated(t *testing.T) {
	r := New(Secret{"A", "abcdefghijkl"})
	for text, want := range map[string]string{
		"said abcdefgh":              "said [redacted:A]",
		"said abcde":                 "said abcde",
		"efghijkl was said":          "[redacted:A] was said",
		"ghijkl abcdefghijkl abcdef": "[redacted:A] [redacted:A] [redacted:A]",
		"":                           "",
	} {
		if got := string(r.Truncated([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"ANTHROPIC_API_KEY": true, "AWS_SECRET_ACCESS_KEY": true, "GITHUB_TOKEN": true, "DB_PASSWORD": true,
		"DB_PWD": true, "SENTRY_DSN": true,
		"GH_PAT": true, "MYAPIKEY": true, "NPM_AUTHTOKEN": true, "npm_config__auth_token": true,
		"SESSION_COOKIE": true, "CLIENT_SECRETS": true,
		"PWD": false, "OLDPWD": false, "PATH": false, "HOME": false, "MAX_TOKENS": false, "KEYBOARD": false,
		"TOKENIZERS_PARALLELISM": false,
		"SSH_AUTH_SOCK":          false, "COMPASS": false, "": false,
	} {
		if got := SecretName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHostile checks texts that would be slow if the time were not linear in their length: the test
// would not end.
func TestHostile(t *testing.T) {
	r := New(Secret{"A", "aaaaaaaaaaaaaaaaaaaaaaaa"})
	for _, piece := range []string{
		"eyJ-", "eyJ.eyJ.", "sk-", "sk-a-", "sk-ant-", "://", "://a:", "-----BEGIN PRIVATE KEY-----",
		"-----BEGIN ", "earer ", "uthorization:", "uthorization: a ",
		"api_key=", "api_key=a", "a", "aaaaaaaaaaaaaaaaaaaaaaaab", "AKIA", "ghp_", "\\\"", "\\u0041", "\"",
		"{\"", "xoxb-", "curl -u a:", "curl -u", "Cookie: a=", "Cookie", "password>", "<password>a", ":AA",
		"Q~", "SK",
		"dapi", "SG.a.", "Signature=", "_PASS=",
	} {
		text := []byte(strings.Repeat(piece, 256<<10/len(piece)))
		r.Bytes(text)
		r.Line(text)
		line, err := json.Marshal([]string{string(text)})
		if err != nil {
			t.Fatal(err)
		}
		if out := r.Line(line); !json.Valid(out) {
			t.Errorf("%q: invalid JSON", piece)
		}
	}
}
