package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// JSON replaces secrets in a JSON text: every string value as [Redactor.Text]
// does, and the whole value of a key with a telling name. Order and numbers
// stay as they are. A text that is not valid JSON is replaced as a whole.
func (r *Redactor) JSON(raw json.RawMessage) (json.RawMessage, int) {
	return r.rewrite(raw, rewriter{text: r.Text, byKey: true})
}

// Kept is [Redactor.JSON] for what is kept: strings are treated as
// [Redactor.Command] does, and lists of strings also as the words of one
// command.
func (r *Redactor) Kept(raw json.RawMessage) (json.RawMessage, int) {
	return r.rewrite(raw, rewriter{text: r.Command, argv: r.Argv, byKey: true})
}

// KeptValues is [Redactor.Kept] without regard to the names of keys, for texts
// whose keys are our own.
func (r *Redactor) KeptValues(raw json.RawMessage) (json.RawMessage, int) {
	return r.rewrite(raw, rewriter{text: r.Command, argv: r.Argv})
}

func (r *Redactor) rewrite(raw json.RawMessage, w rewriter) (json.RawMessage, int) {
	if len(raw) == 0 {
		return raw, 0
	}
	if !json.Valid(raw) {
		return quote(Mark("invalid-json")), 1
	}
	if !r.suspicious(string(raw)) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw, 0
	}
	w.src = raw
	w.value()
	return w.out.Bytes(), w.n
}

// rewriter copies valid JSON, replacing string values on the way.
type rewriter struct {
	text  func(string) (string, int)
	argv  func([]string) ([]string, int) // nil: lists of strings are nothing special
	byKey bool

	src []byte
	pos int
	out bytes.Buffer
	n   int
}

func (w *rewriter) value() {
	w.space()
	switch w.src[w.pos] {
	case '{':
		w.container('}', w.member)
	case '[':
		if words, end, ok := w.words(); ok {
			w.list(words, end)
			return
		}
		w.container(']', w.value)
	case '"':
		w.str()
	default:
		start := w.pos
		for w.pos < len(w.src) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(w.src[w.pos])) {
			w.pos++
		}
		w.out.Write(w.src[start:w.pos])
	}
}

func (w *rewriter) space() {
	for w.pos < len(w.src) && strings.IndexByte(" \t\r\n", w.src[w.pos]) >= 0 {
		w.pos++
	}
}

func (w *rewriter) container(end byte, item func()) {
	w.out.WriteByte(w.src[w.pos])
	w.pos++
	for w.space(); w.src[w.pos] != end; w.space() {
		if w.src[w.pos] == ',' {
			w.out.WriteByte(',')
			w.pos++
		}
		item()
	}
	w.out.WriteByte(end)
	w.pos++
}

func (w *rewriter) member() {
	w.space()
	from, to := w.literal()
	key := unquote(w.src[from:to])
	w.out.Write(w.src[from:to])
	w.space()
	w.out.WriteByte(':')
	w.pos++
	w.space()
	if w.byKey && telling(key) && strings.IndexByte("tfn", w.src[w.pos]) < 0 {
		w.skip()
		w.out.Write(quote(Mark("value")))
		w.n++
		return
	}
	w.value()
}

// telling reports whether a key's name says that its value is a secret.
func telling(key string) bool {
	key = strings.ReplaceAll(strings.ToLower(key), "-", "_")
	for _, word := range nameWords() {
		if strings.Contains(key, word) {
			return true
		}
	}
	return strings.Contains(key, "authorization") || key == "cookie" || key == "set_cookie"
}

// literal steps over the string literal at pos.
func (w *rewriter) literal() (from, to int) {
	from = w.pos
	for w.pos++; w.src[w.pos] != '"'; w.pos++ {
		if w.src[w.pos] == '\\' {
			w.pos++
		}
	}
	w.pos++
	return from, w.pos
}

// skip steps over one value of any kind.
func (w *rewriter) skip() {
	d := json.NewDecoder(bytes.NewReader(w.src[w.pos:]))
	var v json.RawMessage
	if d.Decode(&v) == nil {
		w.pos += int(d.InputOffset())
	}
}

func (w *rewriter) str() {
	from, to := w.literal()
	text := unquote(w.src[from:to])
	out, n := w.text(text)
	if n == 0 {
		w.out.Write(w.src[from:to])
		return
	}
	w.n += n
	w.out.Write(quote(out))
}

// words reads the list at pos when it holds strings only and more than one.
func (w *rewriter) words() (words []string, end int, ok bool) {
	if w.argv == nil {
		return nil, 0, false
	}
	start := w.pos
	defer func() { w.pos = start }()
	w.pos++
	for w.space(); w.src[w.pos] != ']'; w.space() {
		if w.src[w.pos] == ',' {
			w.pos++
			w.space()
		}
		if w.src[w.pos] != '"' {
			return nil, 0, false
		}
		from, to := w.literal()
		words = append(words, unquote(w.src[from:to]))
	}
	return words, w.pos + 1, len(words) > 1
}

// list redacts each word alone and then the words as one command line, so that
// a flag and its value are seen together.
func (w *rewriter) list(words []string, end int) {
	w.pos = end
	out, n := w.argv(words)
	w.n += n
	w.out.WriteByte('[')
	for i, word := range out {
		if i > 0 {
			w.out.WriteByte(',')
		}
		w.out.Write(quote(word))
	}
	w.out.WriteByte(']')
}

// Argv replaces secrets in the words of one command: in each word, and in a
// word that follows a flag or belongs to a program that takes a password there.
func (r *Redactor) Argv(words []string) (out []string, n int) {
	out = make([]string, len(words))
	for i, word := range words {
		var m int
		out[i], m = r.Command(word)
		n += m
	}
	for i, word := range out {
		if i == 0 || strings.Contains(word, markOpen) {
			continue
		}
		// The words before give the context; a word is judged as one unit, so
		// spaces inside words cannot shift it.
		line := plain(out[0]) + " " + plain(out[i-1]) + " " + plain(word)
		if i == 1 {
			line = plain(out[0]) + " " + plain(word)
		}
		if _, m := r.Command(line); m > 0 && !strings.HasPrefix(word, "--") {
			out[i] = Mark("value")
			n += m
		}
	}
	return out, n
}

// plain makes a word safe to stand between spaces.
func plain(word string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\r\n\"'|;&", r) {
			return '_'
		}
		return r
	}, word)
}

func unquote(lit []byte) string {
	var s string
	if err := json.Unmarshal(lit, &s); err != nil {
		return string(lit)
	}
	return s
}

func quote(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
