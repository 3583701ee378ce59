// Command sandbox measures what confining a command costs: beside starting it
// plainly, and beside bubblewrap with the same view of the file system, all in
// turns in one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/bench/page"
	"github.com/zeph-tools/zeph-mcp-tools/sandbox"
)

func main() {
	out := flag.String("out", "", "page to put the table into; empty = standard output")
	n := flag.Int("n", 500, "starts of each kind")
	heap := flag.Int("worker", -1, "")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var err error
	if *heap >= 0 {
		err = work(ctx, *heap)
	} else {
		err = run(ctx, *out, *n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-sandbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, n int) error {
	p, err := newPlaces()
	if err != nil {
		return err
	}
	defer os.RemoveAll(p.base) //nolint:errcheck // a scratch folder
	t := &table{n: n}
	if err := errors.Join(t.starts(ctx, p), t.sessions(ctx, p), t.heaps(ctx)); err != nil {
		return err
	}
	if out == "" {
		_, err := os.Stdout.WriteString(t.markdown())
		return err
	}
	return page.Write(out, "The sandbox", t.markdown())
}

// places is a workspace like many: a repository with hooks, a home with
// secrets.
type places struct {
	base, root, hooks, state, scratch, cache string
	secretFiles, secretFolders               []string
}

func newPlaces() (places, error) {
	base, err := os.MkdirTemp("/var/tmp", "zeph-bench-")
	if err != nil {
		return places{}, err
	}
	in := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	p := places{
		base: base, root: in("work"), hooks: in("work", ".git", "hooks"), state: in("state"), scratch: in("scratch"), cache: in("cache"),
		secretFiles: []string{in("home", ".netrc"), in("home", ".npmrc")}, secretFolders: []string{in("home", ".ssh"), in("home", ".aws")},
	}
	for _, d := range append([]string{p.hooks, p.state, p.scratch, p.cache}, p.secretFolders...) {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return p, err
		}
	}
	for _, f := range p.secretFiles {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			return p, err
		}
	}
	return p, nil
}

// sandbox makes one for the places.
func (p places) sandbox(ctx context.Context) (*sandbox.Sandbox, error) {
	s, err := sandbox.New(sandbox.Default(), sandbox.Policy{
		Roots: []string{p.root}, Secrets: append(p.secretFiles, p.secretFolders...), ReadOnly: []string{p.hooks},
		StateDir: p.state, CacheDir: p.cache,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return s, s.Probe(ctx).Err
}

func (p places) command(session string) sandbox.Command {
	return sandbox.Command{
		Session: session, Scratch: p.scratch, Argv: []string{"/bin/true"}, Dir: p.root,
		Env: []string{"PATH=/usr/bin:/bin"}, MaxOutput: 1 << 10,
	}
}

// plain is the least that starts a program and waits for it.
func (p places) plain() error {
	c := exec.Command("/bin/true") //nolint:noctx // a context would cost a goroutine
	c.Dir, c.Env = p.root, []string{"PATH=/usr/bin:/bin"}
	return c.Run()
}

// bubblewrap is the command line that gives the same view.
func (p places) bubblewrap(program string) func() error {
	args := []string{
		"--unshare-all", "--cap-drop", "ALL", "--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
		"--tmpfs", "/run", "--bind", p.scratch, "/tmp", "--bind", p.root, p.root, "--bind", p.cache, p.cache,
		"--ro-bind", p.hooks, p.hooks, "--tmpfs", p.state,
	}
	for _, d := range p.secretFolders {
		args = append(args, "--tmpfs", d)
	}
	for _, f := range p.secretFiles {
		args = append(args, "--ro-bind", "/dev/null", f)
	}
	args = append(args, "--chdir", p.root, "/bin/true")
	return func() error {
		c := exec.Command(program, args...) //nolint:noctx // as above
		c.Env = []string{"PATH=/usr/bin:/bin"}
		return c.Run()
	}
}
