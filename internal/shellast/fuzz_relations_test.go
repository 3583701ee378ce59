//go:build trace

package shellast_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

// FuzzRelations checks what must hold between the verdicts of related
// commands: another spelling of the same command, or the same command in
// another place, is never judged more leniently.
func FuzzRelations(f *testing.F) {
	fx := newFixture(f, command.Default(), strict())
	for _, text := range traceCorpus(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1024 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return
		}
		was, _ := fx.judge(bashArgs{Command: text})
		if was.Decisive.Code == "parse_error" {
			return // FuzzCommand hands such a text to shells
		}
		for _, v := range append(spellings(t, text), places(text)...) {
			now, _ := fx.judge(bashArgs{Command: v.text})
			if now.Verdict > was.Verdict {
				t.Errorf("%s\n%q is %s (%s %s)\n%q is %s", v.how, text, was.Verdict, was.Decisive.Code, was.Decisive.Reason, v.text, now.Verdict)
			}
		}
	})
}

type variant struct{ how, text string }

// spellings are other ways to write the same command.
func spellings(t *testing.T, text string) []variant {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil // ours refused it for another reason, or read a part
	}
	var out []variant
	for _, p := range []struct {
		how string
		*syntax.Printer
	}{
		{"printed anew", syntax.NewPrinter()},
		{"printed small", syntax.NewPrinter(syntax.Minify(true))},
		{"printed wide", syntax.NewPrinter(syntax.Indent(3), syntax.BinaryNextLine(true), syntax.SpaceRedirects(true), syntax.FunctionNextLine(true))},
	} {
		var b bytes.Buffer
		if p.Print(&b, file) == nil && !dropsRemark(text) {
			out = append(out, variant{p.how, b.String()})
		}
	}
	aliases := strings.Contains(text, "alias") || strings.Contains(text, "ALIAS") || strings.Contains(text, "expand")
	syntax.Walk(file, func(n syntax.Node) bool {
		if _, ok := n.(*syntax.CmdSubst); ok && strings.Contains(text, "`") {
			return false // quotes in backticks have a grammar of their own
		}
		c, ok := n.(*syntax.CallExpr)
		if !ok || len(out) > 40 {
			return true
		}
		for i, w := range c.Args {
			out = append(out, requoted(text, w, aliases && i == 0)...)
			if i > 0 {
				out = append(out, respaced(text, c.Args[i-1], w)...)
			}
		}
		return true
	})
	return out
}

// dropsRemark reports whether a text holds what printing it anew does not
// keep as it is: comments, here-documents, continued lines, nested backticks, and what its
// printer takes for a tab stop.
func dropsRemark(text string) bool {
	return strings.Contains(text, "#") || strings.Contains(text, "<<") || strings.ContainsAny(text, "\\`\v\f")
}

// requoted are other quotings of a literal word.
func requoted(text string, w *syntax.Word, mayBeAlias bool) []variant {
	lit := w.Lit()
	from, to := int(w.Pos().Offset()), int(w.End().Offset())
	// The keyword time reads its options as they are written.
	if lit == "--" || lit == "-p" || mayBeAlias || lit == "" || to > len(text) || text[from:to] != lit ||
		!regexp.MustCompile(`^[A-Za-z0-9_./:,@%+-]+$`).MatchString(lit) {
		return nil
	}
	if to < len(text) && (text[to] == '<' || text[to] == '>') {
		return nil // a number there is a descriptor, unless it is quoted
	}
	put := func(how, s string) variant { return variant{how, text[:from] + s + text[to:]} }
	return []variant{
		put("in single quotes", "'"+lit+"'"), put("in double quotes", `"`+lit+`"`), put("with a backslash", `\`+lit),
		put("half in quotes", lit[:1]+"''"+lit[1:]), put("in ANSI-C quotes", "$'"+lit+"'"), put("with an empty end", lit+`""`),
	}
}

// respaced are other distances between two words.
func respaced(text string, a, b *syntax.Word) []variant {
	from, to := int(a.End().Offset()), int(b.Pos().Offset())
	if from > to || to > len(text) || strings.Trim(text[from:to], " \t") != "" || from == to {
		return nil
	}
	return []variant{{"more space", text[:from] + " \t  " + text[to:]}, {"a line continuation", text[:from] + " \\\n " + text[to:]}}
}

// places are commands that run the text somewhere else.
func places(text string) []variant {
	quoted := "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	var out []variant
	// A searcher reads a pipe instead of the folder it stands in.
	searches := regexp.MustCompile(`\b(rg|ag|ack)\b`).MatchString(text)
	add := func(form string) {
		if searches && strings.HasPrefix(form, "true | ") {
			return
		}
		out = append(out, variant{form, strings.NewReplacer("TEXT", text, "QUOTED", quoted).Replace(form)})
	}
	if trailing := len(text) - len(strings.TrimRight(text, `\`)); trailing%2 == 0 {
		for _, form := range []string{
			"TEXT\ntrue", "{ TEXT\n}; true", "true && { TEXT\n}", "(TEXT\n)", "( ( TEXT\n) )", "! { TEXT\n}", "if true; then TEXT\nfi", "case x in x) TEXT\n;; esac",
			"{ TEXT\n} | cat", "{ TEXT\n} > out.log", "time { TEXT\n}", "{ TEXT\n} &", "true | { TEXT\n}", "false || { TEXT\n}",
			"echo \"$(TEXT\n)\"", "x=$(TEXT\n)", "cat <(TEXT\n)", "coproc { TEXT\n}",
		} {
			add(form)
		}
		if !usesCall(text) {
			add("f() { TEXT\n}; f")
			add("f() ( TEXT\n); f")
			add("function g { TEXT\n}\ng")
		}
	}
	if usesCall(text) {
		return out
	}
	for _, form := range []string{
		"sh -c -- QUOTED", "bash -c -- QUOTED", "bash -ec -- QUOTED", "eval -- QUOTED", "env sh -c -- QUOTED", "nohup bash -c -- QUOTED", "timeout 5 sh -c -- QUOTED",
		"bash <<< QUOTED", "printf '%s\\n' QUOTED | bash", "trap -- QUOTED EXIT", "find . -maxdepth 0 -exec sh -c -- QUOTED \\;", "cd . && bash -c -- QUOTED", "true; eval -- QUOTED; true",
	} {
		if !strings.Contains(form, "find") || !strings.Contains(text, "{}") {
			add(form)
		}
	}
	return out
}

// usesCall reports whether a text depends on the function or shell around it.
func usesCall(text string) bool {
	return regexp.MustCompile(`\$[0-9@*#?!_-]|\$\{[!#]?[0-9@*#?!_-]|\b(local|declare|typeset|return|shift|set|getopts|alias|BASH_ALIASES|for [A-Za-z_]+;? *do)\b|^-`).MatchString(text)
}
