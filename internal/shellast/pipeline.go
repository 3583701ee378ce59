package shellast

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// PlainPipeline reports whether a command is one pipeline of simple commands
// and nothing else, so that the shell which runs it is the same before and
// after: every stage is a shell of its own, and no trap, option, variable or
// exit in one reaches it. A further line may then ask how the stages ended.
// Whatever could notice that line, or keep it from being one, says no.
func PlainPipeline(command string) bool {
	if !strings.Contains(command, "|") || strings.HasSuffix(strings.TrimRight(command, " \t\n"), `\`) {
		return false
	}
	for _, text := range []string{"$$", "PPID", "BASH", "/proc/", "PIPESTATUS"} {
		if strings.Contains(command, text) {
			return false // it looks at the shell that runs it
		}
	}
	file, perr := parse(command)
	if perr != nil || len(file.Stmts) != 1 {
		return false
	}
	return isPipeline(file.Stmts[0]) && isPlain(file.Stmts[0])
}

func isPipeline(s *syntax.Stmt) bool {
	b, ok := s.Cmd.(*syntax.BinaryCmd)
	return ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll)
}

// isPlain looks at every stage.
func isPlain(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess || s.Disown || s.Semicolon.IsValid() {
		return false
	}
	for _, r := range s.Redirs {
		if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
			return false
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		return isPipeline(s) && len(s.Redirs) == 0 && isPlain(c.X) && isPlain(c.Y)
	case *syntax.CallExpr:
		return len(c.Args) > 0 && isOrdinary(c.Args[0].Lit())
	}
	return false
}

// isOrdinary refuses program names that are not written out, and the programs
// that look at other processes or at their command lines.
func isOrdinary(name string) bool {
	name = name[strings.LastIndexByte(name, '/')+1:]
	return name != "" && !slices.Contains([]string{
		"ps", "pgrep", "pkill", "pidof", "top", "htop", "kill", "killall", "prlimit", "strace", "gdb", "lsof", "fuser",
		"pstree", "wait", "jobs", "fg", "bg", "disown",
	}, name)
}
