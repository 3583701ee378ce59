package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/internal/redact"
)

// Test secrets are put together at run time so that no scanner takes this file
// for a leak.
func fake(parts ...string) string { return strings.Join(parts, "") }

type textCase struct{ name, in, secret, kind string }

func textCases() []textCase {
	aws := fake("AKIA", "IOSFODNN7EXAMPLE")
	gh := fake("ghp_", strings.Repeat("a1B2", 9))
	pat := fake("github_pat_", strings.Repeat("11AAbb_", 8))
	sk := fake("sk-", "proj-", strings.Repeat("Zx9", 10))
	slack := fake("xoxb-", "123456789012-abcdefGHIJ")
	jwt := fake("eyJ", "hbGciOiJIUzI1NiJ9.", "eyJ", "zdWIiOiIxMjM0In0.", "sflKxwRJSMeKKF2QT4")
	pem := fake("-----BEGIN RSA PRI", "VATE KEY-----\nMIIEow\nabc\n-----END RSA PRI", "VATE KEY-----")
	open := fake("-----BEGIN OPENSSH PRI", "VATE KEY-----\nb3BlbnNzaC1r")
	return []textCase{
		{"aws", "id=" + aws + " region", aws, "aws-key"},
		{"github", "token " + gh, gh, "github-token"},
		{"github fine-grained", pat, pat, "github-token"},
		{"openai", `"` + sk + `"`, sk, "api-key"},
		{"slack", slack, slack, "slack-token"},
		{"jwt", "x " + jwt + " y", jwt, "jwt"},
		{"pem", "a\n" + pem + "\nb", "MIIEow", "private-key"},
		{"pem cut off", open, "b3BlbnNzaC1r", "private-key"},
		{"authorization", "Authorization: Bearer hunter2hunter2", "hunter2hunter2", "authorization"},
		{"authorization basic", "authorization: Basic dTpw", "dTpw", "authorization"},
		{"bearer", "bearer abcdefghijklmnop1234", "abcdefghijklmnop1234", "bearer"},
		{"url", "git clone https://user:hunter2@example.com/r", "hunter2", "url-password"},
		{"url with at", "https://u:p@ss@example.com/", "p@ss", "url-password"},
		{"url without user", "redis://:hunter2@10.0.0.1/0", "hunter2", "url-password"},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for _, tt := range textCases() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, n := r.Text(tt.in)
			if n != 1 || strings.Contains(out, tt.secret) || !strings.Contains(out, redact.Mark(tt.kind)) {
				t.Fatalf("Text(%q) = %q, %d", tt.in, out, n)
			}
			if again, n := r.Text(out); again != out || n != 0 {
				t.Errorf("not idempotent: %q, %d", again, n)
			}
		})
	}
}

func TestTextLeavesAlone(t *testing.T) {
	t.Parallel()
	r := redact.New()
	for _, in := range []string{
		"", "password := os.Getenv(\"PASSWORD\")", "token = next()", "https://example.com/a@b", "git@github.com:o/r.git",
		"http://localhost:8080/x@y", "sk-short", "task-force-is-a-long-word-with-dashes-in", "eyJust", "the bearer of news", "AKIA", "https://user@example.com/",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "a:b@c",
	} {
		if out, n := r.Text(in); out != in || n != 0 {
			t.Errorf("Text(%q) = %q, %d", in, out, n)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	r := redact.New()
	const secret = "S3CRETvalue"
	for _, in := range []string{
		"TOKEN=S3CRETvalue make", "export GITHUB_TOKEN='S3CRETvalue' && x", "curl -u u:S3CRETvalue https://x", "curl -su u:S3CRETvalue https://x",
		"curl --user u:S3CRETvalue https://x", "mysql -u root -pS3CRETvalue db", "mysql -p'S3CRETvalue' db", "tool --password S3CRETvalue", "tool --api-key=S3CRETvalue x",
		"sshpass -p S3CRETvalue ssh h", `curl -H "Authorization: Bearer S3CRETvalue"`, "git clone https://u:S3CRETvalue@example.com/r", "db_password: S3CRETvalue",
		`{"client_secret": "S3CRETvalue"}`,
	} {
		if out, n := r.Command(in); n == 0 || strings.Contains(out, secret) {
			t.Errorf("Command(%q) = %q, %d", in, out, n)
		}
	}
	for _, in := range []string{"echo $TOKEN", "TOKEN=$OTHER make", "make token", "grep -rn password .", "mysql -u root db", "curl -u $U https://x", "ls -la", "cat secret.txt"} {
		if out, n := r.Command(in); n != 0 {
			t.Errorf("Command(%q) = %q, %d", in, out, n)
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	r := redact.New()
	tests := []struct{ name, in, want string }{
		{"nothing", `{"a":1,"b":[1,2.50,"x"]}`, `{"a":1,"b":[1,2.50,"x"]}`},
		{"key", `{"password":"x","n":1e3}`, `{"password":"«[redacted:value]»","n":1e3}`},
		{"key case and dash", `{"X-Api-Key":"x","Authorization":"y"}`, `{"X-Api-Key":"«[redacted:value]»","Authorization":"«[redacted:value]»"}`},
		{"key of an object", `{"credentials":{"user":"u","x":[1]},"b":true}`, `{"credentials":"«[redacted:value]»","b":true}`},
		{"flags stay", `{"has_token":true,"secret":null}`, `{"has_token":true,"secret":null}`},
		{"deep string", `{"a":[{"command":"TOKEN=abc make"}]}`, `{"a":[{"command":"TOKEN=«[redacted:value]» make"}]}`},
		{"argv", `{"argv":["mysql","-pabc","db"]}`, `{"argv":["mysql","«[redacted:value]»","db"]}`},
		{"argv pair", `["tool","--token","abc"]`, `["tool","--token","«[redacted:value]»"]`},
		{"argv curl", `["curl","-u","u:abc"]`, `["curl","-u","«[redacted:value]»"]`},
		{"escaped", `{"\u0070assword":"x"}`, `{"\u0070assword":"«[redacted:value]»"}`},
		{"space", "{ \"token\" : \"x\" , \"a\" : [ ] , \"o\" : { } }", `{"token":"«[redacted:value]»","a":[],"o":{}}`},
		{"invalid", `{"password":"x"`, `"«[redacted:invalid-json]»"`},
		{"empty", ``, ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := r.Kept(json.RawMessage(tt.in))
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Fatal(diff)
			}
		})
	}
	got, n := r.KeptValues(json.RawMessage(`{"secret":"~/.ssh","x":"TOKEN=abc"}`))
	if want := `{"secret":"~/.ssh","x":"TOKEN=«[redacted:value]»"}`; string(got) != want || n != 1 {
		t.Errorf("KeptValues = %s, %d", got, n)
	}
}

func TestJSONLeavesTextToWorkWith(t *testing.T) {
	t.Parallel()
	in := `{"content":"password = os.Getenv(\"X\")","argv":["mysql","-pabc"],"token":"x","url":"https://u:p@h/"}`
	want := `{"content":"password = os.Getenv(\"X\")","argv":["mysql","-pabc"],"token":"«[redacted:value]»","url":"https://u:«[redacted:url-password]»@h/"}`
	if got, n := redact.New().JSON(json.RawMessage(in)); string(got) != want || n != 2 {
		t.Errorf("JSON = %s, %d", got, n)
	}
}

func FuzzRedact(f *testing.F) {
	for _, tt := range textCases() {
		f.Add(tt.in)
	}
	f.Add(`{"password":"x","a":["mysql","-px"]}`)
	r := redact.New()
	f.Fuzz(func(t *testing.T, in string) {
		out, n := r.Text(in)
		if n == 0 && out != in {
			t.Fatalf("changed without a count: %q", out)
		}
		r.Command(in)
		if j, _ := r.Kept(json.RawMessage(in)); len(in) > 0 && !json.Valid(j) {
			t.Fatalf("JSON(%q) = %q", in, j)
		}
	})
}

func BenchmarkTextClean(b *testing.B) {
	r, in := redact.New(), strings.Repeat("ok  \tgithub.com/some/module/package\t0.123s\n", 700)
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		r.Text(in)
	}
}
