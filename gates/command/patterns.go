package command

import (
	"path"
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// patterns is a compiled confirm_patterns.
type patterns struct {
	constructs map[string]bool // by the kinds of call.Construct
	acts       map[call.ActKind]bool
	sql        map[string]bool
	commands   [][]string // words of command patterns
	texts      []string   // lower case
}

// compile reads confirm_patterns. Names of built-in rules stand for the whole
// rule, whatever the spelling of the command.
func compile(list []string) patterns {
	p := patterns{constructs: map[string]bool{}, acts: make(map[call.ActKind]bool), sql: map[string]bool{}}
	for _, raw := range list {
		t := strings.ToLower(strings.Join(strings.Fields(raw), " "))
		if kind := constructKind(t); kind != "" {
			p.constructs[kind] = true
			continue
		}
		switch t {
		case "rm", "rm *":
			p.acts[call.ActRemove] = true
		case "truncate", "truncate *":
			p.acts[call.ActTruncate] = true
		case "git push -f", "git push --force":
			p.acts[call.ActPush] = true
		case "drop table", "drop database", "truncate table":
			p.sql[t] = true
		default:
			p.other(t)
		}
	}
	return p
}

// other reads a command pattern or a plain text. One word is a command name:
// as a text it would match in the middle of other words.
func (p *patterns) other(t string) {
	words := strings.Fields(t)
	if len(words) == 1 && !strings.ContainsAny(t, "*") {
		p.commands = append(p.commands, append(words, "*"))
		return
	}
	if strings.Contains(t, "*") {
		p.commands = append(p.commands, words)
		return
	}
	p.commands = append(p.commands, append(words, "*"))
	p.texts = append(p.texts, t)
}

func constructKind(t string) string {
	switch t {
	case "$(", "$()", "$( )":
		return "$( )"
	case "`", "``":
		return "``"
	case "<(", "<()", "<( )":
		return "<( )"
	case ">(", ">()", ">( )":
		return ">( )"
	case "<<<":
		return "<<<"
	case "eval":
		return "eval"
	}
	return ""
}

// command returns the pattern that a command matches.
func (p *patterns) command(c call.Command) (string, bool) {
	if c.Name == "" {
		return "", false
	}
	for _, words := range p.commands {
		if matchWords(words, c) {
			return strings.Join(words, " "), true
		}
	}
	return "", false
}

// matchWords compares word by word; a last "*" stands for any words. Options
// before the subcommand do not hide it.
func matchWords(words []string, c call.Command) bool {
	return slices.ContainsFunc(c.Forms(), func(argv []string) bool { return matchArgv(words, argv) })
}

func matchArgv(words, argv []string) bool {
	for i, w := range words {
		if w == "*" && i == len(words)-1 {
			return true
		}
		if i >= len(argv) {
			return false
		}
		if ok, err := path.Match(w, strings.ToLower(argv[i])); err != nil || !ok {
			return false
		}
	}
	return len(words) == len(argv)
}

// text returns the plain text that a command line holds.
func (p *patterns) text(command string) (string, bool) {
	low := strings.ToLower(command)
	for _, t := range p.texts {
		if strings.Contains(low, t) {
			return t, true
		}
	}
	return "", false
}
