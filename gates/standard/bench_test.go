package standard_test

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
	"github.com/zeph-tools/zeph-mcp-tools/gates/standard"
	"github.com/zeph-tools/zeph-mcp-tools/internal/shellast"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// ordinary is a command of 200 characters as developers write them.
const ordinary = `cd sub && git status --short && go test -race -run 'Test(A|B)$' ./... 2>&1 | tee out.txt | grep -E 'FAIL|ok' | sort -u > result.txt; for f in *.go; do gofmt -l "$f" >> fmt.txt; done; echo "$(date)" ok`

// short is what most commands are like.
const short = `git status --short`

// judge reads a command and asks every gate of a server about it.
func judge(tb testing.TB, text string) func() gates.Judgement {
	tb.Helper()
	root := tb.TempDir()
	if err := os.Mkdir(root+"/sub", 0o755); err != nil {
		tb.Fatal(err)
	}
	ws, err := workspace.Open(workspace.Config{Roots: []string{root}}, workspace.Env{Home: tb.TempDir(), UID: os.Getuid()})
	if err != nil {
		tb.Fatal(err)
	}
	policy, err := egress.NewPolicy(egress.Default())
	if err != nil {
		tb.Fatal(err)
	}
	chain, err := standard.Chain(config(), standard.Deps{
		Tools: []string{"bash"}, Roots: ws.Roots(), Posture: command.Posture{Confined: true, PIDNamespace: true}, Egress: policy,
	})
	if err != nil {
		tb.Fatal(err)
	}
	ast := shellast.New(ws, shellast.Options{})
	spec := call.Spec{Name: "bash", Effect: call.RunsCommands, Confirm: call.ConfirmByPolicy}
	args, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		tb.Fatal(err)
	}
	return func() gates.Judgement {
		return chain.Judge(context.Background(), call.Call{
			ID: "c", Session: "s", Caller: call.Caller{ID: "local", Transport: "stdio", Trust: call.TrustTrusted},
			Spec: spec, Args: args, Facts: ast.Analyze(shellast.Request{Command: text}),
		})
	}
}

// TestJudgingIsBounded keeps what one command may cost: it does not measure
// time, which a busy machine decides. It runs alone, because allocations are
// counted for the whole process.
func TestJudgingIsBounded(t *testing.T) { //nolint:paralleltest // see above
	if len(ordinary) != 200 {
		t.Fatalf("the command has %d characters", len(ordinary))
	}
	for _, tt := range []struct {
		text                string
		allocations, memory uint64
	}{
		{ordinary, 350, 64 << 10},
		{short, 80, 20 << 10},
	} {
		once := judge(t, tt.text)
		if j := once(); j.Verdict != gates.Allow {
			t.Fatalf("%s: %s %s: %s", tt.text, j.Verdict, j.Decisive.Code, j.Decisive.Reason)
		}
		const runs = 200
		if n := testing.AllocsPerRun(runs, func() { once() }); n > float64(tt.allocations) {
			t.Errorf("%s: %v allocations", tt.text, n)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			once()
		}
		runtime.ReadMemStats(&after)
		if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > tt.memory {
			t.Errorf("%s: %d bytes", tt.text, n)
		}
	}
}

// BenchmarkCommand reads a command of 200 characters and asks every gate.
func BenchmarkCommand(b *testing.B) { benchmark(b, ordinary) }

// BenchmarkShort reads a short command and asks every gate.
func BenchmarkShort(b *testing.B) { benchmark(b, short) }

func benchmark(b *testing.B, text string) {
	b.Helper()
	once := judge(b, text)
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		once()
		if len(took) < 1<<16 {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}
