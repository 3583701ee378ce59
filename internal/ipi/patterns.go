package ipi

import (
	"regexp"
	"strings"
	"sync"
)

const zeroWidth = "zero_width_chars"

// reach is how far from its anchor a pattern may match, in bytes.
const reach = 256

// pattern is one weighted sign of an injection. The anchors are looked for
// first, because a case-folding regular expression over megabytes costs a
// hundred times as much; the expression is tried only where an anchor stands.
type pattern struct {
	name    string
	weight  int // hundredths
	phrase  bool
	anchors []string              // lower case; each occurrence is a place to look
	start   startFunc             // where the expression is tried; nil = at the anchor, at the start of a word
	expr    func() *regexp.Regexp // anchored
}

// startFunc returns where to try an expression whose anchor stands at i; -1
// means nowhere.
type startFunc func(text string, i int) int

// maxTries bounds the places looked at for a pattern that blanks nothing.
const maxTries = 1000

// patterns is the table, in the order the names are reported.
func patterns() []pattern {
	phrase := func(name string, weight int, expr string, anchors ...string) pattern {
		return pattern{name: name, weight: weight, phrase: true, anchors: anchors, expr: lazy(expr)}
	}
	return []pattern{
		phrase("delimiter_escape", 50, `(?i)^</?(?:system|assistant|user|tool-output|external-data)[\s>]`,
			"<system", "</system", "<assistant", "</assistant", "<user", "</user",
			"<tool-output", "</tool-output", "<external-data", "</external-data"),
		phrase("inst_tag", 40, `(?i)^\[INST\]`, "[inst]"),
		phrase("im_start_tag", 40, `(?i)^<\|im_start\|>`, "<|im_start|>"),
		phrase("sys_tag", 40, `(?i)^\[SYS\]`, "[sys]"),
		{
			name: "system_colon", weight: 40, phrase: true, anchors: []string{"system"}, start: lineStart,
			expr: lazy(`(?i)^[ \t]*system\s*:`),
		},
		phrase("section_header", 40, `(?i)^###\s*(?:Instruction|System|Human|Assistant)\s*:`, "###"),
		{name: zeroWidth, weight: 30}, // found by Clean
		{
			name: "html_hidden", weight: 30, anchors: []string{"display", "visibility", "hidden"}, start: tagStart,
			expr: lazy(`(?i)^<[a-z][^<>]*?(?:display\s*:\s*none|visibility\s*:\s*hidden|\shidden\s*=)`),
		},
		phrase("ignore_instructions", 40, `(?i)^ignore\s+(?:all\s+)?(?:any\s+)?(?:previous\s+)?(?:prior\s+)?instructions\b`, "ignore"),
		phrase("role_override", 40, `(?i)^you\s+are\s+now\b`, "you"),
		phrase("forget_everything", 40, `(?i)^forget\s+(?:everything|all)\b`, "forget"),
		phrase("disregard_instructions", 40, `(?i)^disregard\s+(?:your|all|previous)\b`, "disregard"),
		phrase("override_directives", 40, `(?i)^override\s+(?:your|all)\s+(?:directive|instruction|rule)s?\b`, "override"),
		phrase("act_as_if", 40, `(?i)^act\s+as\s+if\b`, "act"),
		phrase("pretend_you_are", 40, `(?i)^pretend\s+(?:you\s+are|to\s+be)\b`, "pretend"),
		phrase("your_new_instructions", 40, `(?i)^your\s+new\s+instructions\b`, "your"),
	}
}

func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// find returns every place where the pattern matches, or the first for a
// pattern that blanks nothing. lower is text in lower case, byte for byte.
func (p pattern) find(text, lower string) []span {
	start := p.start
	if start == nil {
		start = wordStart
	}
	var out []span
	tries := 0
	for _, anchor := range p.anchors {
		for at := 0; ; {
			i := strings.Index(lower[at:], anchor)
			if i < 0 {
				break
			}
			i += at
			at = i + len(anchor)
			from := start(text, i)
			if from < 0 {
				continue
			}
			if tries++; !p.phrase && tries > maxTries {
				return out
			}
			m := p.expr().FindStringIndex(text[from:min(i+len(anchor)+reach, len(text))])
			if m == nil {
				continue
			}
			out = append(out, span{from, from + m[1]})
			if !p.phrase {
				return out
			}
			at = max(at, from+m[1])
		}
	}
	return out
}

// wordStart is the anchor itself, unless it stands inside a longer word.
func wordStart(text string, i int) int {
	if i > 0 && isWord(text[i]) && isWord(text[i-1]) {
		return -1
	}
	return i
}

// lineStart is the start of the line when only blanks stand before the anchor.
func lineStart(text string, i int) int {
	for i > 0 && (text[i-1] == ' ' || text[i-1] == '\t') {
		i--
	}
	if i > 0 && text[i-1] != '\n' {
		return -1
	}
	return i
}

// tagStart is the < of the tag the anchor stands in.
func tagStart(text string, i int) int {
	low := max(i-reach, 0)
	j := strings.LastIndexAny(text[low:i], "<>")
	if j < 0 || text[low+j] == '>' {
		return -1
	}
	return low + j
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}
