// Package shellast is the one way to read a shell command. It turns a command
// into [call.Facts] on the parse tree of the bash grammar: every place where
// bash would run a program, the words resolved as far as they can be without
// running anything, the paths that are read and written, and what stays
// unknown. It starts no process, opens no file and has no opinion: gates judge
// the facts.
package shellast

import (
	"errors"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// The bounds of one analysis. What exceeds them is refused or unknown, never
// skipped.
const (
	maxCommand  = 64 << 10 // bytes of a command
	maxNesting  = 200      // open brackets
	maxMoves    = 64       // times that loops are walked again because they change their folder
	maxRounds   = 3        // rounds of one loop from folders that are known
	maxDepth    = 12       // shells in shells in shells
	maxLoops    = 32       // loops in loops whose variables are told apart
	maxCommands = 4000     // command positions
	maxBraces   = 512      // words out of one brace expansion
	maxVars     = 256      // variables that are followed
	maxText     = 64 << 10 // bytes of one variable
	maxResolved = 1 << 20  // bytes of all resolved words

	maxCandidates = 8 // items of a loop whose paths are looked at
)

// Resolver says where a path leads and what that place is.
// [github.com/zeph-tools/zeph-mcp-tools/internal/workspace.Workspace] is the
// real one.
type Resolver interface {
	Resolve(cwd, text string, followLast bool) call.Path
	Home() string
	Roots() []string
	SecretsAt(dir string) []string
}

// Options are the operator's choices that change what a command means. The
// zero value is the strict side.
type Options struct {
	AllowHostNetwork bool // network = "host" may be asked for
	AllowAnyHost     bool // allow_domains may name addresses and special-use names
}

// Given is what a command has without its call asking for it. The zero value is
// nothing.
type Given struct {
	Network string                   // "" and "off", "proxy", "host"
	Opens   func(domain string) bool // whether a host is reached there; nil = none is
	Writes  bool                     // the workspace can be written, to stay
}

// Request is one command to read.
type Request struct {
	Command      string
	Cwd          string // "" = the first workspace root; relative = below it
	Env          map[string]string
	AllowDomains []string
	AllowWrite   []string
	Network      string // "", "off", "proxy", "host"
	Given        Given
}

// Analyzer reads commands. It is safe for concurrent use.
type Analyzer struct {
	r   Resolver
	opt Options
	tab func() *tables // built at the first command
}

// New returns an analyzer over the given workspace. It panics on a nil
// resolver, because nothing could be judged without one.
func New(r Resolver, opt Options) *Analyzer {
	if r == nil {
		panic("shellast: nil resolver")
	}
	return &Analyzer{r: r, opt: opt, tab: sync.OnceValue(newTables)}
}

// Analyze returns what a command means. It never fails: a command that cannot
// be read has Facts.Parse set, and nothing else of it is reliable.
func (a *Analyzer) Analyze(req Request) call.Facts {
	f := call.Facts{Text: req.Command, Summary: summary(req.Command)}
	f.Cwd = a.cwd(req.Cwd)
	a.loosening(&f, req)
	file, perr := parse(req.Command)
	if perr != nil {
		f.Parse = perr
		return f
	}
	w := &walker{common: &shared{left: maxResolved}, a: a, f: &f, src: req.Command, funcs: map[string]bool{}, printed: map[int]output{}}
	st := newState(f.Cwd.Path)
	w.callEnv(st, req.Env)
	w.stmts(st, file.Stmts)
	w.finish(st, shellMark{})
	w.definitions()
	w.forkBombs()
	return f
}

// cwd resolves the working directory of a request.
func (a *Analyzer) cwd(text string) call.Path {
	root := "/"
	if roots := a.r.Roots(); len(roots) > 0 {
		root = roots[0]
	}
	if text == "" {
		text = root
	}
	p := a.r.Resolve(root, text, true)
	p.By, p.Op = "cwd", "cwd"
	return p
}

// summary is the first line of a command, cut to what a person reads at once.
func summary(command string) string {
	const limit = 200
	line, rest, more := strings.Cut(strings.TrimSpace(command), "\n")
	if r := []rune(line); len(r) > limit {
		return "run: " + string(r[:limit]) + "…"
	}
	if more && strings.TrimSpace(rest) != "" {
		line += " …"
	}
	return "run: " + line
}

// parse reads a whole command and refuses what our parser and bash may read
// differently.
func parse(text string) (*syntax.File, *call.ParseError) {
	if len(text) > maxCommand {
		return nil, &call.ParseError{
			Message:    "the command is over 64 KiB",
			Suggestion: "write the text to a file with the write tool and run the file",
			Pos:        call.Pos{Line: 1, Column: 1},
		}
	}
	if pos, ok := tooDeep(text); ok {
		return nil, &call.ParseError{Message: "the command is nested too deeply", Suggestion: "split the command", Pos: pos}
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return nil, &call.ParseError{Message: "the command holds a NUL byte", Pos: posAt(text, i)}
	}
	file, err := syntax.NewParser(syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, parseError(err)
	}
	if i := falseComment(text, file); i >= 0 {
		return nil, &call.ParseError{
			Message:    `a "#" that follows a quote or an expansion is part of the word for bash`,
			Suggestion: `quote the "#", or put a blank before it if it starts a comment`,
			Pos:        posAt(text, i),
		}
	}
	if pos, ok := letOperator(file); ok {
		return nil, &call.ParseError{
			Message:    "bash reads an unquoted operator after let as its own, not as a part of the expression",
			Suggestion: "use (( )), or quote the expression",
			Pos:        pos,
		}
	}
	if i := bareCR(text, file); i >= 0 {
		return nil, &call.ParseError{
			Message:    "a carriage return outside quotes is part of the word for bash",
			Suggestion: "use LF line ends",
			Pos:        posAt(text, i),
		}
	}
	return file, nil
}

func parseError(err error) *call.ParseError {
	out := &call.ParseError{Message: err.Error(), Suggestion: "check quotes, brackets and here-documents; the command was not run"}
	if e, ok := errors.AsType[syntax.ParseError](err); ok {
		out.Message = e.Text
		out.Pos = call.Pos{Line: e.Pos.Line(), Column: e.Pos.Col()}
	}
	return out
}

// tooDeep counts brackets without regard to quotes: a text that opens two
// hundred more than it closes is no command a person can judge.
func tooDeep(text string) (call.Pos, bool) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxNesting {
			return posAt(text, i), true
		}
	}
	return call.Pos{}, strings.Count(text, "if ") > 2000 || strings.Count(text, "time ") > 2000
}

// falseComment returns the offset of the first comment that is none for bash,
// -1 when there is none. In a subshell our parser starts one at the "#" of ""#,
// and what follows would not be judged.
func falseComment(text string, file *syntax.File) int {
	if !strings.Contains(text, "#") {
		return -1
	}
	var hashes []int
	ends := map[int]bool{} // of words and arrays
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.Comment:
			hashes = append(hashes, int(x.Hash.Offset()))
		case *syntax.Word, *syntax.ArrayExpr:
			ends[int(x.End().Offset())] = true
		}
		return true
	})
	for _, at := range hashes {
		if at <= len(text) && (ends[at] || !startsWord(text[:at])) {
			return at
		}
	}
	return -1
}

// letOperator finds an operator of a let expression that bash reads as one
// between commands, or as a redirection.
func letOperator(file *syntax.File) (pos call.Pos, found bool) {
	syntax.Walk(file, func(n syntax.Node) bool {
		let, ok := n.(*syntax.LetClause)
		if !ok || found {
			return !found
		}
		for _, e := range let.Exprs {
			syntax.Walk(e, func(m syntax.Node) bool {
				switch x := m.(type) {
				case *syntax.BinaryArithm:
					if strings.ContainsAny(x.Op.String(), "&|<>") {
						found, pos = true, call.Pos{Line: x.OpPos.Line(), Column: x.OpPos.Col()}
					}
				case *syntax.ParenArithm:
					found, pos = true, call.Pos{Line: x.Lparen.Line(), Column: x.Lparen.Col()}
				case *syntax.Word:
					return false
				}
				return !found
			})
		}
		return !found
	})
	return pos, found
}

// startsWord reports whether a word would start after this text.
func startsWord(before string) bool {
	for strings.HasSuffix(before, "\\\n") {
		before = before[:len(before)-2]
	}
	return before == "" || strings.IndexByte(" \t\n;&|()<>`", before[len(before)-1]) >= 0
}

// bareCR returns the offset of the first carriage return outside quotes and
// here-documents, -1 when there is none.
func bareCR(text string, file *syntax.File) int {
	if !strings.Contains(text, "\r") {
		return -1
	}
	quoted := make([]bool, len(text)+1)
	mark := func(from, to syntax.Pos, v bool) {
		for i := from.Offset(); i < to.Offset() && int(i) < len(quoted); i++ {
			quoted[i] = v
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch x := n.(type) {
		case *syntax.SglQuoted:
			mark(x.Pos(), x.End(), true)
		case *syntax.DblQuoted:
			mark(x.Pos(), x.End(), true)
		case *syntax.CmdSubst:
			mark(x.Pos(), x.End(), false)
		case *syntax.Redirect:
			if x.Hdoc != nil {
				mark(x.Hdoc.Pos(), x.Hdoc.End(), true)
			}
		}
		return true
	})
	for i := range len(text) {
		if text[i] == '\r' && !quoted[i] {
			return i
		}
	}
	return -1
}

// posAt is the line and column of an offset.
func posAt(text string, off int) call.Pos {
	before := text[:min(off, len(text))]
	nl := strings.LastIndexByte(before, '\n')
	return call.Pos{Line: uint(strings.Count(before, "\n") + 1), Column: uint(len(before) - nl)}
}
