package shellast

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// leading is the text that a word starts with whatever the rest expands to, and
// whether that is all of it.
func leading(x *syntax.Word) (text string, whole bool) {
	var b strings.Builder
	for _, p := range x.Parts {
		switch q := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(q.Value, "{}*?~") || strings.Contains(q.Value, "[") && strings.Contains(q.Value, "]") && len(x.Parts) == 1 && !isElement(q.Value) {
				return b.String(), false
			}
			b.WriteString(unslash(q.Value, ""))
		case *syntax.SglQuoted:
			if q.Dollar {
				return b.String(), false
			}
			b.WriteString(q.Value)
		case *syntax.DblQuoted:
			for _, d := range q.Parts {
				l, ok := d.(*syntax.Lit)
				if !ok || q.Dollar {
					return b.String(), false
				}
				b.WriteString(unslash(l.Value, "$`\"\\\n"))
			}
		default:
			return b.String(), false
		}
	}
	return b.String(), true
}

// isElement reports whether a text is name[index].
func isElement(s string) bool {
	name, _, ok := strings.Cut(s, "[")
	return ok && isName(name)
}

// unslash removes the backslashes before the characters of a set, before all
// of them when it is empty.
func unslash(s, before string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (before == "" || strings.IndexByte(before, s[i+1]) >= 0) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// isOneWord reports whether a word stays one: all of it is quoted, and no part
// of it is a list.
func isOneWord(x *syntax.Word) bool {
	for _, p := range x.Parts {
		switch q := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, d := range q.Parts {
				if e, ok := d.(*syntax.ParamExp); ok && (e.Param == nil || e.Param.Value == "@" || e.Index != nil || e.Excl || e.Slice != nil || e.Exp != nil) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

// voidAssign forgets what an assignment in a loop changes.
func (w *walker) voidAssign(st *state, x *syntax.Assign) {
	switch {
	case x.Name != nil:
		st.loosen(x.Name.Value)
	case x.Value == nil:
	default: // export "c=$x"
		text, whole := leading(x.Value)
		name, _, ok := strings.Cut(text, "=")
		switch {
		case ok:
			st.loosenTarget(name)
		case !whole:
			st.loosenAll()
		}
	}
}

// loosenTarget forgets the variable of name, name[index] or name+.
func (s *state) loosenTarget(text string) {
	name, _, _ := strings.Cut(text, "[")
	s.loosen(strings.TrimSuffix(name, "+"))
}

// loosenNamed forgets the variables that the arguments of a builtin name.
func (s *state) loosenNamed(builtin string, args []*syntax.Word) {
	for _, n := range []string{"REPLY", "MAPFILE", "OPTARG", "OPTIND"} {
		if _, ok := s.vars[n]; ok {
			s.loosen(n)
		}
	}
	if builtin == "printf" {
		s.loosenPrinted(args)
		return
	}
	before := "" // the option that the argument belongs to
	for i, a := range args {
		text, whole := leading(a)
		switch {
		case whole, isElement(text) && isOneWord(a):
			s.loosenArgument(builtin, text)
		case builtin == "wait" && before == "", isOneWord(a) && (isOptionValue(builtin, before) || builtin == "getopts" && i != 1):
		default:
			s.loosenAll()
			return
		}
		if before = text; !strings.HasPrefix(text, "-") {
			before = ""
		}
	}
}

// loosenArgument forgets what one argument names, also as a part of an option.
func (s *state) loosenArgument(builtin, text string) {
	if !strings.HasPrefix(text, "-") {
		s.loosenTarget(text)
		return
	}
	if strings.Contains(text, "C") && builtin != "read" {
		s.loosenAll() // mapfile runs code
	}
	for i := 1; i < len(text); i++ {
		if rest := text[i:]; isName(rest) {
			s.loosen(rest) // read -ac
		}
	}
}

// isOptionValue reports whether the option before an argument of read or its
// kin takes it and names no variable by it.
func isOptionValue(builtin, option string) bool {
	return builtin != "unset" && option != "" && strings.ContainsRune("ptudnNiOs", rune(option[len(option)-1]))
}

// loosenPrinted forgets the variables that printf -v sets.
func (s *state) loosenPrinted(args []*syntax.Word) {
	for i := 0; i < len(args); i++ {
		text, whole := leading(args[i])
		if !whole && (text == "" || text[0] == '-') && (len(args) > 1 || !isOneWord(args[i])) {
			s.loosenAll()
			return
		}
		name, isOption := strings.CutPrefix(text, "-v")
		if !isOption {
			return
		}
		if name == "" {
			if i++; i == len(args) {
				return
			}
			name, whole = leading(args[i])
			if known := whole || isElement(name) && isOneWord(args[i]); !known {
				s.loosenAll()
				return
			}
		}
		s.loosenTarget(name)
	}
}
