// Command bench measures the server beside a bare one in the same run.
//
// The bare server is the same SDK with one tool that runs `bash -c` and one
// that echoes, with no gates, no sandbox and no record. Calls to both are
// interleaved, so a noisy machine disturbs both alike; medians and ratios are
// what to quote.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/internal/bench/page"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "bare" {
		if err := serveBare(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	bin := flag.String("bin", "bin/zeph-mcp-tools", "the server's binary")
	out := flag.String("out", "", "file to write the table to; empty = standard output")
	rounds := flag.Int("n", 300, "interleaved calls of each kind")
	flag.Parse()
	if err := run(*bin, *out, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run: both servers, one scratch workspace.
type bench struct {
	ctx    context.Context //nolint:containedctx // one run, one context
	n      int
	ours   []string
	bare   []string
	env    []string
	dir    string
	report report
}

func run(bin, out string, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	b, cleanup, err := prepare(ctx, bin, n)
	if err != nil {
		return err
	}
	defer cleanup()
	steps := []struct {
		name string
		do   func() error
	}{
		{"start", b.start},
		{"calls", b.calls},
		{"in flight", b.inFlight},
		{"big output", b.bigOutput},
		{"sleepers", b.sleepers},
		{"judging", b.judging},
		{"tools/list", b.toolsList},
	}
	for _, s := range steps {
		fmt.Fprintln(os.Stderr, "bench:", s.name)
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	text := b.report.markdown()
	if out == "" {
		_, err = os.Stdout.WriteString(text)
		return err
	}
	return page.Write(out, "The server", text)
}

// prepare makes a workspace with a 2 KB file and a configuration that turns
// every tool on.
func prepare(ctx context.Context, bin string, n int) (*bench, func(), error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	bin, err = filepath.Abs(bin)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.MkdirTemp("", "zeph-bench-")
	if err != nil {
		return nil, nil, err
	}
	cleanup := func() { os.RemoveAll(root) } //nolint:errcheck,gosec // a scratch folder
	ws := filepath.Join(root, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		return nil, nil, err
	}
	line := "The quick brown fox jumps over the lazy dog, line after line.\n"
	var text []byte
	for len(text) < 2048 {
		text = append(text, line...)
	}
	if err := os.WriteFile(filepath.Join(ws, "two.txt"), text[:2048], 0o644); err != nil {
		return nil, nil, err
	}
	conf := filepath.Join(root, "config.toml")
	key := filepath.Join(root, "key")
	if err := os.WriteFile(key, []byte("not-a-real-key"), 0o600); err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(conf, []byte("[tools.search]\nenabled = true\napi_key_file = \""+key+"\"\n"), 0o600); err != nil {
		return nil, nil, err
	}
	env := append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(root, "state"))
	return &bench{
		ctx: ctx, n: n, dir: ws, env: env,
		ours: []string{bin, "serve", "--transport", "stdio", "--workspace", ws, "--config", conf},
		bare: []string{self, "bare"},
	}, cleanup, nil
}

// start pairs cold starts up to the answer to initialize, and reads the
// resident size of an idle server.
func (b *bench) start() error {
	var ours, bare []time.Duration
	var ourRSS, bareRSS int64
	for range 25 {
		d, rss, err := b.oneStart(b.ours)
		if err != nil {
			return err
		}
		ours, ourRSS = append(ours, d), rss
		if d, rss, err = b.oneStart(b.bare); err != nil {
			return err
		}
		bare, bareRSS = append(bare, d), rss
	}
	b.report.ratio("start to the answer to initialize, p50", median(ours), median(bare), 1.5)
	b.report.atMost("resident memory, idle, MiB", mib(ourRSS), 24, fmt.Sprintf("bare %.1f", mib(bareRSS)))
	return nil
}

func (b *bench) oneStart(argv []string) (time.Duration, int64, error) {
	began := time.Now()
	c, err := dial(b.ctx, argv, b.dir, b.env)
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	time.Sleep(150 * time.Millisecond)
	rss := c.memory("VmRSS:")
	return took, rss, c.close()
}

// both opens one session with each server and warms it up.
func (b *bench) both() (ours, bare *client, err error) {
	if ours, err = dial(b.ctx, b.ours, b.dir, b.env); err != nil {
		return nil, nil, err
	}
	if bare, err = dial(b.ctx, b.bare, b.dir, b.env); err != nil {
		return nil, nil, err
	}
	for range 10 {
		if _, err := ours.call("bash", map[string]any{"command": "echo hi"}); err != nil {
			return nil, nil, err
		}
		if _, err := bare.call("bash", map[string]any{"command": "echo hi"}); err != nil {
			return nil, nil, err
		}
	}
	return ours, bare, nil
}

// calls interleaves single calls of both servers.
func (b *bench) calls() error {
	ours, bare, err := b.both()
	if err != nil {
		return err
	}
	var ourEcho, bareEcho, ourRead, bareTool, ourStatus []time.Duration
	sh := map[string]any{"command": "echo hi"}
	for range b.n {
		for _, m := range []struct {
			c    *client
			tool string
			args map[string]any
			into *[]time.Duration
		}{
			{ours, "bash", sh, &ourEcho},
			{bare, "bash", sh, &bareEcho},
			{ours, "read", map[string]any{"path": "two.txt"}, &ourRead},
			{bare, "echo", map[string]any{"text": twoKB()}, &bareTool},
			{ours, "status", map[string]any{}, &ourStatus},
		} {
			d, err := m.c.call(m.tool, m.args)
			if err != nil {
				return fmt.Errorf("%s: %w", m.tool, err)
			}
			*m.into = append(*m.into, d)
		}
	}
	b.report.ratio("bash `echo hi`, p50", median(ourEcho), median(bareEcho), 1.35)
	b.report.ratio("read of 2 KB beside a bare echo tool of 2 KB, p50", median(ourRead), median(bareTool), 2)
	b.report.info("status, p50", median(ourStatus).Round(time.Microsecond).String())
	return closeAll(ours, bare)
}

// inFlight compares the throughput of eight callers.
func (b *bench) inFlight() error {
	ours, bare, err := b.both()
	if err != nil {
		return err
	}
	var ourRate, bareRate []float64
	for range 5 {
		r, err := ours.rate(8, b.n)
		if err != nil {
			return err
		}
		ourRate = append(ourRate, r)
		if r, err = bare.rate(8, b.n); err != nil {
			return err
		}
		bareRate = append(bareRate, r)
	}
	b.report.atLeast("8 calls in flight, calls a second", middle(ourRate), middle(bareRate), 0.7)
	return closeAll(ours, bare)
}

func (b *bench) toolsList() error {
	c, err := dial(b.ctx, b.ours, b.dir, b.env)
	if err != nil {
		return err
	}
	raw, err := c.request("tools/list", map[string]any{})
	if err != nil {
		return err
	}
	b.report.atMost("tools/list with everything on, bytes", float64(len(raw)), 14000, "")
	return c.close()
}

func closeAll(cs ...*client) error {
	for _, c := range cs {
		if err := c.close(); err != nil {
			return err
		}
	}
	return nil
}
