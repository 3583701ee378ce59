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

// judge reads a command and asks every gate of a server about it.
func judge(tb testing.TB) func() gates.Judgement {
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
	args, err := json.Marshal(map[string]string{"command": ordinary})
	if err != nil {
		tb.Fatal(err)
	}
	return func() gates.Judgement {
		return chain.Judge(context.Background(), call.Call{
			ID: "c", Session: "s", Caller: call.Caller{ID: "local", Transport: "stdio", Trust: call.TrustTrusted},
			Spec: spec, Args: args, Facts: ast.Analyze(shellast.Request{Command: ordinary}),
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
	once := judge(t)
	if j := once(); j.Verdict != gates.Allow {
		t.Fatalf("%s %s: %s", j.Verdict, j.Decisive.Code, j.Decisive.Reason)
	}
	const runs = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		once()
	}
	runtime.ReadMemStats(&after)
	if n := (after.Mallocs - before.Mallocs) / runs; n > 2000 {
		t.Errorf("%d allocations for one command", n)
	}
	if n := (after.TotalAlloc - before.TotalAlloc) / runs; n > 256<<10 {
		t.Errorf("%d bytes for one command", n)
	}
}

// BenchmarkCommand reads a command of 200 characters and asks every gate.
func BenchmarkCommand(b *testing.B) {
	once := judge(b)
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
