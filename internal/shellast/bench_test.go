package shellast_test

import (
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

// BenchmarkJudge measures parsing, facts and both gates for an ordinary
// command of 200 characters.
func BenchmarkJudge(b *testing.B) {
	f := newFixture(b, command.Default(), strict())
	cmd := `cd sub && git status --short && go test -race -run 'Test(A|B)$' ./... 2>&1 | tee out.txt | grep -E 'FAIL|ok' | sort -u > result.txt; for f in *.go; do gofmt -l "$f" >> fmt.txt; done; echo "$(date +%F) done"`
	b.ReportAllocs()
	for b.Loop() {
		f.judge(bashArgs{Command: cmd})
	}
}

// BenchmarkLargest measures a command of the largest size that is read.
func BenchmarkLargest(b *testing.B) {
	f := newFixture(b, command.Default(), strict())
	cmd := strings.Repeat("cat file.txt | sort\n", 3000)
	b.ReportAllocs()
	for b.Loop() {
		f.judge(bashArgs{Command: cmd})
	}
}

// BenchmarkNested measures as many loops in loops as a command can hold.
func BenchmarkNested(b *testing.B) {
	f := newFixture(b, command.Default(), strict())
	cmd := strings.Repeat("for x in a;do ", 3000) + "ls" + strings.Repeat(";done", 3000)
	b.ReportAllocs()
	for b.Loop() {
		f.judge(bashArgs{Command: cmd})
	}
}
