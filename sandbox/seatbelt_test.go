package sandbox

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/sandbox/stage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// form is an expression of the profile's language: a list, or what is none.
type form struct {
	list []form
	word string // as it is written
	text string // of a string: what it says
	kind byte   // '(' list, '"' string, '#' pattern, 'a' word
}

// readForms reads a profile as the system's reader does: lists, words, strings
// in which \ makes the next character stand for itself, and patterns in which
// nothing but the next quote is special.
func readForms(s string) ([]form, error) {
	stack := [][]form{nil}
	put := func(f form) { stack[len(stack)-1] = append(stack[len(stack)-1], f) }
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '(':
			stack = append(stack, nil)
		case c == ')':
			if len(stack) == 1 {
				return nil, errors.New("a ) too many")
			}
			l := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			put(form{kind: '(', list: l})
		case c == ';':
			return nil, errors.New("a comment, which no profile of ours has")
		case c == '"':
			var text strings.Builder
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
				if i < len(s) {
					text.WriteByte(s[i])
				}
			}
			if i >= len(s) {
				return nil, errors.New("a string without an end")
			}
			put(form{kind: '"', text: text.String()})
		case c == '#' && strings.HasPrefix(s[i:], `#"`):
			n := strings.IndexByte(s[i+2:], '"')
			if n < 0 {
				return nil, errors.New("a pattern without an end")
			}
			put(form{kind: '#', text: s[i+2 : i+2+n]})
			i += n + 2
		case strings.IndexByte(" \t\n", c) >= 0:
		default:
			n := strings.IndexAny(s[i:], " \t\n()\"")
			if n <= 0 {
				return nil, fmt.Errorf("a word without an end at %q", s[i:])
			}
			put(form{kind: 'a', word: s[i : i+n]})
			i += n - 1
		}
	}
	if len(stack) != 1 {
		return nil, errors.New("a ( too many")
	}
	return stack[0], nil
}

// judgeOf reads a profile and returns what it says of doing something with a
// file, as the system decides it: the last rule that matches counts.
func judgeOf(tb testing.TB, profile string) func(op, path string) bool {
	tb.Helper()
	forms, err := readForms(profile)
	if err != nil {
		tb.Fatalf("the profile cannot be read: %v\n%s", err, profile)
	}
	type rule struct {
		allow   bool
		ops     []string
		filters []func(string) bool
	}
	var rules []rule
	for _, f := range forms {
		if f.kind != '(' || len(f.list) < 2 || f.list[0].kind != 'a' {
			tb.Fatalf("%+v is no rule", f)
		}
		r := rule{allow: f.list[0].word == "allow"}
		switch f.list[0].word {
		case "version":
			continue
		case "allow", "deny":
		default:
			tb.Fatalf("%q is no rule of ours", f.list[0].word)
		}
		for _, part := range f.list[1:] {
			if part.kind == 'a' {
				r.ops = append(r.ops, part.word)
			} else {
				r.filters = append(r.filters, filterOf(tb, part))
			}
		}
		rules = append(rules, r)
	}
	return func(op, path string) bool {
		verdict := false
		for _, r := range rules {
			covers := func(o string) bool {
				return o == "default" || o == op || strings.HasSuffix(o, "*") && strings.HasPrefix(op, o[:len(o)-1])
			}
			if slices.ContainsFunc(r.ops, covers) &&
				(len(r.filters) == 0 || slices.ContainsFunc(r.filters, func(m func(string) bool) bool { return m(path) })) {
				verdict = r.allow
			}
		}
		return verdict
	}
}

// filterOf is what a filter matches, of files; those about anything else match
// no file.
func filterOf(tb testing.TB, f form) func(string) bool {
	tb.Helper()
	if f.kind != '(' || len(f.list) < 2 {
		tb.Fatalf("%+v is no filter", f)
	}
	arg := f.list[1]
	switch name := f.list[0].word; {
	case name == "literal" && arg.kind == '"':
		return func(p string) bool { return p == arg.text }
	case name == "subpath" && arg.kind == '"':
		return func(p string) bool { return below(p, arg.text) }
	case name == "regex" && arg.kind == '#':
		re, err := regexp.Compile("(?s)" + arg.text)
		if err != nil {
			tb.Fatal(err)
		}
		return re.MatchString
	case slices.Contains([]string{
		"require-all", "target", "sysctl-name", "sysctl-name-prefix", "global-name", "ipc-posix-name", "remote", "local",
	}, name):
		return func(string) bool { return false }
	}
	tb.Fatalf("%+v is no filter of ours", f)
	return nil
}

const macHome = "/Users/me"

func macPolicy() Policy {
	root := macHome + "/src/project"
	return Policy{
		Roots: []string{root}, StateDir: macHome + "/.local/state/zeph",
		Secrets:  []string{macHome + "/.ssh", macHome + "/.netrc", "/etc/ssl/private", root + "/keys/prod.pem"},
		ReadOnly: []string{root + "/.git/hooks", root + "/.git/config", root + "/.vscode", root + "/.envrc"},
	}
}

func macSetup(p Policy, writes Places, extra ...string) *stage.Setup {
	return &stage.Setup{Mounts: p.seatbeltPlan(macHome, writes, p.StateDir+"/tmp-1", extra)}
}

func profileOf(tb testing.TB, m *stage.Setup, lo loopback) string {
	tb.Helper()
	text, err := seatbelt(m, lo)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func TestSeatbeltProfiles(t *testing.T) {
	t.Parallel()
	all := Roots | Caches
	host, unix := macSetup(macPolicy(), all), macSetup(macPolicy(), all)
	host.HostNetwork, unix.UnixSockets = true, true
	for name, text := range map[string]string{
		"workspace": profileOf(t, macSetup(macPolicy(), all), loopback{}),
		"read-only": profileOf(t, macSetup(macPolicy(), 0), loopback{}),
		"extra":     profileOf(t, macSetup(macPolicy(), all, "/private/var/tmp/build dir"), loopback{}),
		"proxy":     profileOf(t, macSetup(macPolicy(), all), loopback{connect: []int{49152, 5432}, listen: []int{3000}}),
		"host":      profileOf(t, host, loopback{}),
		"unix":      profileOf(t, unix, loopback{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judgeOf(t, text)
			file := filepath.Join("testdata", "seatbelt", name+".sb")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The rows of the acceptance table that are about files, decided as macOS
// would decide them.
func TestSeatbeltDecides(t *testing.T) {
	t.Parallel()
	p := macPolicy()
	p.Roots = append(p.Roots, macHome+"/.local/state/zeph/inside") // a root in a closed place
	p.CacheDir = p.StateDir + "/cache/1"
	full := judgeOf(t, profileOf(t, macSetup(p, Roots|Caches), loopback{}))
	closed := judgeOf(t, profileOf(t, macSetup(p, 0), loopback{}))
	root := macHome + "/src/project"
	const read, write, unlink, create, meta, run = "file-read-data", "file-write-data", "file-write-unlink", "file-write-create",
		"file-read-metadata", "process-exec"
	for _, c := range []struct {
		op, path     string
		want, wantRO bool
	}{
		{write, root + "/main.go", true, false},
		{create, root + "/a/b/c", true, false},
		{run, root + "/a.out", true, true},
		{"file-write-mode", root + "/main.go", true, false},
		{"file-write-setugid", root + "/main.go", false, false},
		{read, "/usr/bin/git", true, true},
		{run, "/bin/sh", true, true},
		{write, "/usr/local/bin/x", false, false},
		{"file-write-mode", macHome + "/notes", false, false},
		{"file-write-times", macHome + "/notes", false, false},
		{"file-write-xattr", macHome + "/notes", false, false},
		{create, macHome + "/x", false, false},
		{read, macHome + "/.gitconfig", true, true},
		{read, macHome + "/.ssh", false, false},
		{read, macHome + "/.ssh/id_ed25519", false, false},
		{read, macHome + "/.SSH/id_ed25519", false, false},
		{meta, macHome + "/.ssh/id_ed25519", false, false},
		{read, "/System/Volumes/Data" + macHome + "/.ssh/id_ed25519", false, false},
		{read, macHome + "/.sshx", true, true},
		{read, macHome + "/.netrc", false, false},
		{read, "/private/etc/ssl/private/key.pem", false, false},
		{read, "/private/etc/hosts", true, true},
		{read, macHome + "/Library/Mail/x", false, false},
		{read, macHome + "/Library/Developer/x", true, true},
		{read, "/Users/other/x", false, false},
		{read, "/private/tmp/x", false, false},
		{create, "/private/tmp/x", false, false},
		{create, p.StateDir + "/tmp-1/x", true, true},
		{read, p.StateDir + "/audit.jsonl", false, false},
		{write, p.StateDir + "/audit.jsonl", false, false},
		{write, p.StateDir + "/inside/x", true, false},
		{write, p.CacheDir + "/x", true, false},
		{meta, p.StateDir, true, true}, // on the way to what is open
		{create, root + "/.git/hooks/pre-commit", false, false},
		{create, root + "/.Git/HOOKS/pre-commit", false, false},
		{unlink, root + "/.git/hooks", false, false},
		{unlink, root + "/.git", false, false}, // not to be carried away
		{unlink, root + "/.git/index.lock", true, false},
		{write, root + "/.git/config", true, false}, // looked at after the command
		{create, root + "/.vscode/tasks.json", false, false},
		{create, root + "/.envrc", false, false},
		{read, root + "/.envrc", true, true},
		{read, root + "/keys/prod.pem", false, false},
		{unlink, root + "/keys/prod.pem", false, false},
		{unlink, root + "/keys", false, false}, // or it would be open under another name
		{unlink, root, false, false},
		{create, root + "/keys/test.pem", true, false},
		{read, "/dev/disk0", false, false},
		{write, "/dev/null", true, true},
		{read, "/dev/ttys001", false, false},
	} {
		if got := full(c.op, c.path); got != c.want {
			t.Errorf("%s %s: allowed %v, want %v", c.op, c.path, got, c.want)
		}
		if got := closed(c.op, c.path); got != c.wantRO {
			t.Errorf("read-only: %s %s: allowed %v, want %v", c.op, c.path, got, c.wantRO)
		}
	}
}

// hostile are names that try to say something in the profile.
func hostile() []string {
	return []string{
		`a"b`, `a\`, `a\"b`, `"))(allow default)(deny file* (literal "`, `) (allow network*) (`, `;comment`, `#"`, `a b`, `ü`, `日本`, `[a-z]*`, `.*`, `$`, `^`,
		`(subpath "/")`, `|/`, `{2}`, "\u202e", `'`, "`", `%s`, `~`, `..x`, `-`,
	}
}

// A name says nothing but itself: as a root it opens itself alone, as a secret
// it closes itself.
func TestSeatbeltTakesNamesAsNames(t *testing.T) {
	t.Parallel()
	for _, name := range hostile() {
		namesAreNames(t, name)
	}
	for _, name := range []string{"a\nb", "a\x00b", "a\x1bb", "\xff", "a\u0085b"} {
		p := Policy{Roots: []string{"/Users/me/" + name}, StateDir: "/Users/me/.state"}
		if text, err := seatbelt(macSetup(p, Roots), loopback{}); err == nil {
			t.Errorf("%q: a root that cannot be written down is in the profile:\n%s", name, text)
		}
		p = Policy{Roots: []string{"/Users/me/w"}, StateDir: "/Users/me/.state", Secrets: []string{"/Users/me/w/" + name}}
		text := profileOf(t, macSetup(p, Roots), loopback{})
		if judgeOf(t, text)("file-read-data", "/Users/me/w/"+name) {
			t.Errorf("%q: a secret of that name is open", name)
		}
	}
}

func namesAreNames(t *testing.T, name string) {
	t.Helper()
	root, secret := macHome+"/"+name, macHome+"/w/"+name
	p := Policy{
		Roots: []string{root, macHome + "/w"}, StateDir: macHome + "/.state", Secrets: []string{secret, macHome + "/other/" + name},
		ReadOnly: []string{root + "/.p-" + name},
	}
	allowed := judgeOf(t, profileOf(t, macSetup(p, Roots), loopback{}))
	for _, c := range []struct {
		op, path string
		want     bool
	}{
		{"file-write-data", root + "/x", true},
		{"file-write-data", root + "/.p-" + name, false},
		{"file-write-data", root + "/.P-" + name + "/x", false},
		{"file-read-data", secret, false},
		{"file-read-data", secret + "/x", false},
		{"file-write-unlink", secret, false},
		{"file-read-data", macHome + "/other/" + name, false},
		{"file-write-data", macHome + "/x", false},
		{"file-write-data", "/x", false},
		{"network-outbound", "", false},
		{"file-write-data", macHome + "/.state/x", false},
		{"file-read-data", macHome + "/.state/x", false},
	} {
		if got := allowed(c.op, c.path); got != c.want {
			t.Errorf("name %q: %s %q: allowed %v, want %v", name, c.op, c.path, got, c.want)
		}
	}
}

func FuzzSeatbelt(f *testing.F) {
	for _, name := range hostile() {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if _, err := quoted(name); err != nil || name == "" || name == "." || name == ".." || strings.Contains(name, "/") || len(name) > 255 {
			t.Skip("no name a root can have")
		}
		if slices.ContainsFunc([]string{"w", "x", "other", ".state", "library", "zeph"}, func(s string) bool { return strings.EqualFold(s, name) }) {
			t.Skip("a name that stands for something else here")
		}
		namesAreNames(t, name)
	})
}

func TestSeatbeltRefusesWhatItCannotSay(t *testing.T) {
	t.Parallel()
	for _, op := range []stage.Op{stage.OpUnset, stage.OpTmpfs, stage.OpEmpty, stage.OpKeep, stage.OpNames, stage.OpList} {
		if _, err := seatbelt(&stage.Setup{Mounts: []stage.Mount{{Op: op, Path: "/x"}}}, loopback{}); err == nil {
			t.Errorf("operation %d is passed over", op)
		}
	}
	p := macPolicy()
	for i := range 10_000 {
		p.Secrets = append(p.Secrets, fmt.Sprintf("%s/src/project/deep/folder/secret-%d.pem", macHome, i))
	}
	if _, err := seatbelt(macSetup(p, Roots), loopback{}); err == nil {
		t.Error("a profile of any length is made")
	}
}
