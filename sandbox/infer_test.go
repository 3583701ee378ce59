package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func inferred(stderr string) []Violation {
	v := view{
		policy: Policy{
			Roots: []string{"/w", "/home/u/p"}, Secrets: []string{"/home/u/.ssh", "/w/.env"}, ReadOnly: []string{"/w/.git/hooks"},
			StateDir: "/home/u/.state",
		},
		writes: Tmp | Caches | Roots, extra: []string{"/opt/x"}, dir: "/w/sub", files: 4096, procs: 512,
	}
	var vs violations
	v.infer(Stream{Head: []byte(stderr)}, vs.add)
	return vs.all()
}

// Only a complaint about what the policy denies is one.
func TestInfer(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		// What tools really print.
		"bash: line 1: /etc/hosts: Read-only file system":                           "write /etc/hosts fs.write",
		"bash: line 1: /etc/hosts: Permission denied":                               "open /etc/hosts fs.write",
		"touch: cannot touch '/etc/x': Read-only file system":                       "write /etc/x fs.write",
		"mkdir: cannot create directory ‘/usr/x’: Permission denied":                "write /usr/x fs.write",
		"cp: cannot create regular file '/usr/a b/c': Permission denied":            "write /usr/a b/c fs.write",
		"rm: cannot remove '../../etc/passwd': Read-only file system":               "write /etc/passwd fs.write",
		"tee: /usr/share/x: Read-only file system":                                  "write /usr/share/x fs.write",
		"open /etc/x: read-only file system":                                        "write /etc/x fs.write",
		"OSError: [Errno 30] Read-only file system: '/usr/lib/x'":                   "write /usr/lib/x fs.write",
		"PermissionError: [Errno 13] Permission denied: '/usr/lib/x'":               "open /usr/lib/x fs.write",
		"Error: EACCES: permission denied, mkdir '/usr/lib/node_modules'":           "write /usr/lib/node_modules fs.write",
		"java.io.FileNotFoundException: /etc/x (Permission denied)":                 "open /etc/x fs.write",
		"fatal: could not create work tree dir '/srv/x': Permission denied":         "write /srv/x fs.write",
		"chmod: changing permissions of '/etc/hosts': Read-only file system":        "write /etc/hosts fs.write",
		"cat: /home/u/.ssh/id_ed25519: Permission denied":                           "read /home/u/.ssh/id_ed25519 fs.secret",
		"ls: cannot open directory '/home/u/.ssh': Permission denied":               "read /home/u/.ssh fs.secret",
		"cat: ../.env: Permission denied":                                           "read /w/.env fs.secret",
		"cat: /home/u/.state/audit.jsonl: Permission denied":                        "read /home/u/.state/audit.jsonl fs.secret",
		"bash: line 1: /w/.git/hooks/pre-commit: Read-only file system":             "write /w/.git/hooks/pre-commit fs.protected",
		"mv: cannot move 'a' to '/usr/a': Read-only file system":                    "write /usr/a fs.write",
		"bash: line 3: fork: retry: Resource temporarily unavailable":               "processes 512 limit.processes",
		"runtime: failed to create new OS thread: Resource temporarily unavailable": "processes 512 limit.processes",
		"node: EMFILE: too many open files, open 'x'":                               "open files 4096 limit.open_files",
		"\x1b[31m/etc/\x1b[2Jx\x1b[0m: Permission denied":                           "",

		// The program's own affair.
		"bash: line 1: ./script.sh: Permission denied":                              "",
		"cat: private: Permission denied":                                           "",
		"chown: changing ownership of '/w/f': Operation not permitted":              "",
		"cp: cannot create '/opt/x/y': Permission denied":                           "",
		"cp: cannot create '/tmp/y': Permission denied":                             "",
		"cat: /proc/1/environ: Permission denied":                                   "",
		"git@github.com: Permission denied (publickey).":                            "",
		"ssh: connect to host x port 22: Permission denied":                         "",
		"permission denied":                                                         "",
		"Permission denied: ":                                                       "",
		"read: Resource temporarily unavailable":                                    "",
		"the tests for 'permission denied' passed in /etc":                          "",
		"error: " + strings.Repeat("x", maxErrorLine) + "/etc/x: Permission denied": "",
		"İ /etc/x: Permission denied":                                               "",
	} {
		got := ""
		for _, v := range inferred("make: one\n" + line + "\nmore\n") {
			got = strings.TrimSpace(v.Op + " " + v.Target + " " + v.Rule)
			if v.Source != "inferred" || v.Hint == "" {
				t.Errorf("%s: %+v", line, v)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestInferCounts(t *testing.T) {
	t.Parallel()
	got := inferred(strings.Repeat("touch: cannot touch '/etc/x': Read-only file system\n", 5))
	want := []Violation{{
		Kind: "fs", Op: "write", Target: "/etc/x", Rule: "fs.write", Source: "inferred", Count: 5, Hint: "outside the workspace; ask for allow_write",
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// What is known exactly is not told again as a guess.
	var vs violations
	vs.add(Violation{Kind: "limit", Op: "processes", Target: "512", Rule: "limit.processes", Source: "exact"})
	vs.add(Violation{Kind: "limit", Op: "processes", Target: "512", Rule: "limit.processes", Source: "inferred"})
	if all := vs.all(); len(all) != 1 || all[0].Count != 1 {
		t.Errorf("%+v", all)
	}
}

// FuzzInfer holds that whatever a program prints stays bounded and harmless to
// show, and that nothing inside the workspace is ever told as outside.
func FuzzInfer(f *testing.F) {
	for _, s := range []string{
		"touch: cannot touch '/etc/x': Read-only file system", "bash: line 1: /w/x: Permission denied", "cat: ‘’: Permission denied",
		"open /etc/x: permission denied\n\xff\xfe: too many open files", "`'`: Operation not permitted", "/: Permission denied",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, v := range inferred(s) {
			if len(v.Target) > maxTarget+10 || strings.ContainsAny(v.Target, "\n\r\x1b\x00") || v.Source != "inferred" || v.Count < 1 {
				t.Fatalf("%+v", v)
			}
			if v.Rule == "fs.write" && below(v.Target, "/home/u/p") {
				t.Fatalf("%+v", v)
			}
		}
	})
}
