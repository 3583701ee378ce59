// Package archtest keeps the architecture: which package may import which,
// that nothing asserts on a tool or a gate, that only the sandbox starts
// processes and only egress opens connections, and that every gate and tool
// package has the agreed shape.
package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/zeph-tools/zeph-mcp-tools"

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Export     string
	Standard   bool
	GoFiles    []string
	Imports    []string
}

// list asks the go command once for every package of the module and what it
// depends on, compiled, so that types can be read from export data.
var list = sync.OnceValues(func() (map[string]pkg, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,Standard,GoFiles,Imports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New(stderr.String())
	}
	pkgs := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs[p.ImportPath] = p
	}
})

func packages(t *testing.T) map[string]pkg {
	t.Helper()
	pkgs, err := list()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return pkgs
}

// own returns the module's packages by their path below the module.
func own(t *testing.T) map[string]pkg {
	t.Helper()
	out := map[string]pkg{}
	for path, p := range packages(t) {
		if path == module {
			out["."] = p
		} else if rel, ok := strings.CutPrefix(path, module+"/"); ok {
			out[rel] = p
		}
	}
	if len(out) < 20 {
		t.Fatalf("only %d packages of the module found: the walk is vacuous", len(out))
	}
	return out
}

// arrows says what each package may import from the module. "x/*" matches the
// packages directly below x. The first pattern that matches counts.
var arrows = []struct {
	pattern string
	may     []string
}{
	{"call", nil},
	{"gates", []string{"call"}},
	{"gates/standard", []string{"call", "gates", "gates/*", "internal/*", "egress"}},
	{"gates/gatestest", []string{"call", "gates"}},
	{"gates/urls", []string{"call", "gates", "internal/*", "egress"}},
	{"gates/*", []string{"call", "gates", "internal/*"}},
	{"tools", []string{"call", "gates", "internal/*"}},
	{"tools/*", []string{"call", "gates", "tools", "sandbox", "egress", "filter", "internal/*"}},
	{"sandbox", []string{"call", "internal/*", "sandbox/stage"}},
	{"sandbox/stage", nil},
	{"egress", []string{"call", "internal/*"}},
	{"filter", []string{"call", "internal/*"}},
	{"audit", []string{"call", "internal/*"}},
	{"approval", []string{"call", "internal/*"}},
	{"internal/bench", []string{"internal/bench/page"}}, // a program of its own: it measures the binary from outside
	{"internal/bench/sandbox", []string{"internal/bench/page", "sandbox"}},
	{"internal/*", []string{"call", "internal/*"}},
	{"pipeline", []string{"call", "gates", "tools", "approval", "audit", "filter", "internal/*"}},
	{"server", []string{"call", "gates", "pipeline", "approval", "internal/*"}},
	{"config", []string{
		"call", "gates/*", "tools/*", "sandbox", "egress", "filter", "audit", "approval", "server", "internal/*", ".",
	}},
	{"cmd/*", []string{"*"}},
	{".", nil},
}

// match reports whether a pattern names a package: "*" any, "*x" by ending,
// "internal/*" anything below internal, "x/*" what is directly below x.
func match(pattern, path string) bool {
	switch base, below := strings.CutSuffix(pattern, "/*"); {
	case pattern == "*":
		return true
	case below && base == "internal":
		return strings.HasPrefix(path, "internal/")
	case below:
		rest, ok := strings.CutPrefix(path, base+"/")
		return ok && !strings.Contains(rest, "/")
	case strings.HasPrefix(pattern, "*"):
		return strings.HasSuffix(path, pattern[1:])
	}
	return pattern == path
}

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for path, p := range own(t) {
		i := slices.IndexFunc(arrows, func(a struct {
			pattern string
			may     []string
		},
		) bool {
			return match(a.pattern, path)
		})
		if i < 0 {
			t.Errorf("%s: no rule says what it may import; a new folder needs an argument", path)
			continue
		}
		for _, imp := range p.Imports {
			rel, ok := strings.CutPrefix(imp, module+"/")
			if imp == module {
				rel, ok = ".", true
			}
			if ok && !slices.ContainsFunc(arrows[i].may, func(m string) bool { return match(m, rel) }) {
				t.Errorf("%s imports %s: the arrow points the wrong way", path, rel)
			}
		}
	}
}

// only lists what just the named packages may import.
var only = map[string][]string{
	"github.com/mark3labs/mcp-go": {"server", "cmd/*", "internal/bench"},
	"mvdan.cc/sh/v3":              {"internal/shellast"},
	"github.com/BurntSushi/toml":  {"config", "cmd/*", "filter"},
	"os/exec":                     {"sandbox", "internal/bench", "internal/bench/sandbox"},
	"github.com/spf13/cobra":      {"cmd/*"},
	"github.com/landlock-lsm":     {"sandbox", "sandbox/stage"},
	"mvdan.cc/sh/v3/interp":       {},
	"plugin":                      {},
	"testing":                     {"*test"},
	"github.com/google/go-cmp":    {},
	"github.com/rogpeppe":         {"tools/write"}, // its diff package
}

func TestReservedImports(t *testing.T) {
	t.Parallel()
	for path, p := range own(t) {
		for _, imp := range p.Imports {
			for reserved, who := range only {
				if imp != reserved && !strings.HasPrefix(imp, reserved+"/") {
					continue
				}
				if !slices.ContainsFunc(who, func(m string) bool { return match(m, path) }) {
					t.Errorf("%s imports %s, which only %v may", path, imp, who)
				}
			}
		}
	}
}

func TestCallIsALeaf(t *testing.T) {
	t.Parallel()
	for _, imp := range own(t)["call"].Imports {
		if !packages(t)[imp].Standard {
			t.Errorf("call imports %s: it may import only the standard library", imp)
		}
	}
}

// TestStageStartsLight keeps the re-executed stage small: it runs before
// everything else in a process that must not do anything else.
func TestStageStartsLight(t *testing.T) {
	t.Parallel()
	p, ok := own(t)["sandbox/stage"]
	if !ok {
		t.Fatal("sandbox/stage does not exist")
	}
	for _, imp := range p.Imports {
		if strings.HasPrefix(imp, "net") || strings.HasPrefix(imp, "encoding/") || imp == "fmt" || imp == "log" || imp == "log/slog" {
			t.Errorf("sandbox/stage imports %s", imp)
		}
	}
}

// typed type-checks one package of the module from export data.
func typed(t *testing.T, p pkg) ([]*ast.File, *types.Info, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, f := range p.GoFiles {
		parsed, err := parser.ParseFile(fset, filepath.Join(p.Dir, f), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, parsed)
	}
	all := packages(t)
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	if _, err := conf.Check(p.ImportPath, fset, files, info); err != nil {
		t.Fatalf("%s: %v", p.ImportPath, err)
	}
	return files, info, fset
}

// TestNobodyAssertsOnAToolOrGate finds what no linter sees: a type assertion
// or type switch on a Tool or a Gate, which is how an optional interface, and
// with it a permissive default, would come back.
func TestNobodyAssertsOnAToolOrGate(t *testing.T) {
	t.Parallel()
	guarded := []string{module + "/tools.Tool", module + "/gates.Gate"}
	seen := 0
	for path, p := range own(t) {
		if !slices.Contains(p.Imports, module+"/tools") && !slices.Contains(p.Imports, module+"/gates") && path != "tools" && path != "gates" {
			continue
		}
		seen++
		files, info, fset := typed(t, p)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if a, ok := n.(*ast.TypeAssertExpr); ok {
					if ty := info.Types[a.X].Type; ty != nil && slices.Contains(guarded, ty.String()) {
						t.Errorf("%s: type assertion on %s", fset.Position(a.Pos()), ty)
					}
				}
				return true
			})
		}
	}
	if seen < 10 {
		t.Errorf("only %d packages looked at: the walk is vacuous", seen)
	}
}

// TestOnlyOnePlaceStartsProcessesAndOneDials looks at uses, not imports: a
// package may name syscall constants, but not start a process or open a
// connection.
func TestOnlyOnePlaceStartsProcessesAndOneDials(t *testing.T) {
	t.Parallel()
	starts := []string{"os.StartProcess", "syscall.ForkExec", "syscall.StartProcess", "syscall.Exec", "os/exec.Command", "os/exec.CommandContext"}
	dials := []string{"net.Dial", "net.DialTimeout", "net.DialTCP", "net.DialUDP", "net.DialUnix", "crypto/tls.Dial", "net/http.Get", "net/http.Post", "net/http.Head", "net/http.PostForm", "net/http.DefaultClient", "net/http.DefaultTransport"}
	found := map[string]bool{}
	for path, p := range own(t) {
		if !slices.ContainsFunc(p.Imports, func(i string) bool {
			return i == "os" || i == "syscall" || i == "os/exec" || i == "net" || i == "net/http" || i == "crypto/tls"
		}) {
			continue
		}
		_, info, fset := typed(t, p)
		for id, obj := range info.Uses {
			if obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
				continue
			}
			name := obj.Pkg().Path() + "." + obj.Name()
			switch {
			case slices.Contains(starts, name):
				found["start"] = true
				if path != "sandbox" && path != "sandbox/stage" && path != "internal/bench" && path != "internal/bench/sandbox" {
					t.Errorf("%s: %s: processes are started by sandbox only", fset.Position(id.Pos()), name)
				}
			case slices.Contains(dials, name), name == "net.Dialer", name == "net/http.Client", name == "net/http.Transport":
				found["dial"] = true
				// The command line asks a running server about open approvals.
				// That is a unix socket in a folder of the user's, and never a
				// connection that leaves the machine.
				local := path == "approval" && name == "net.DialUnix"
				if path != "egress" && !local {
					t.Errorf("%s: %s: connections are opened by egress only", fset.Position(id.Pos()), name)
				}
			}
		}
	}
	if !found["start"] || !found["dial"] {
		t.Errorf("found %v: the walk is vacuous", found)
	}
}

func TestGatePackagesHaveTheAgreedShape(t *testing.T) {
	t.Parallel()
	standard := own(t)["gates/standard"]
	for path, p := range own(t) {
		if !match("gates/*", path) || path == "gates/standard" || path == "gates/gatestest" {
			continue
		}
		for _, f := range []string{"gate.go", "config.go", "gate_test.go", "testdata"} {
			if _, err := os.Stat(filepath.Join(p.Dir, f)); err != nil {
				t.Errorf("%s has no %s", path, f)
			}
		}
		if !slices.Contains(standard.Imports, p.ImportPath) {
			t.Errorf("%s is not in the list of gates/standard", path)
		}
	}
}

func TestToolPackagesHaveTheAgreedShape(t *testing.T) {
	t.Parallel()
	for path, p := range own(t) {
		if !match("tools/*", path) {
			continue
		}
		for _, f := range []string{"args.go", "testdata"} {
			if _, err := os.Stat(filepath.Join(p.Dir, f)); err != nil {
				t.Errorf("%s has no %s", path, f)
			}
		}
		docs, err := filepath.Glob(filepath.Join(p.Dir, "*.md"))
		if err != nil || len(docs) == 0 {
			t.Errorf("%s has no description file", path)
		}
		tests, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil || len(tests) == 0 {
			t.Errorf("%s has no tests", path)
		}
	}
}
