package canonjson

import (
	"bytes"
	"strconv"
)

// maxExponent bounds the written exponent. It is far beyond what any number
// type of a tool can hold and keeps the arithmetic on exponents exact.
const maxExponent = 1_000_000

// number reads one number literal and writes it by its exact decimal value:
// 1, 1.0 and 10e-1 are the same text afterwards, and no digit is lost.
func (p *parser) number() (node, error) {
	start := p.pos
	negative := p.accept('-')
	whole := p.digits()
	var frac []byte
	ok := len(whole) > 0 && (len(whole) == 1 || whole[0] != '0')
	if p.accept('.') {
		frac = p.digits()
		ok = ok && len(frac) > 0
	}
	exponent := 0
	if ok && (p.peek() == 'e' || p.peek() == 'E') {
		exponent, ok = p.exponent()
	}
	if !ok {
		p.pos = start
		return node{}, p.fault("a number is not valid JSON", "write it in digits, such as 12 or 0.5")
	}
	// The value is digits × 10^exponent.
	digits := append(bytes.Clone(whole), frac...)
	exponent -= len(frac)
	digits = bytes.TrimLeft(digits, "0")
	if trimmed := bytes.TrimRight(digits, "0"); len(trimmed) < len(digits) {
		exponent += len(digits) - len(trimmed)
		digits = trimmed
	}
	if len(digits) == 0 {
		return node{text: []byte("0")}, nil
	}
	if exponent > maxExponent || exponent < -maxExponent {
		p.pos = start
		return node{}, p.fault("a number's exponent is beyond reason", "send a number within the range of a double")
	}
	return node{text: appendNumber(nil, negative, digits, exponent)}, nil
}

func (p *parser) accept(c byte) bool {
	if p.peek() != c || p.pos >= len(p.src) {
		return false
	}
	p.pos++
	return true
}

func (p *parser) digits() []byte {
	start := p.pos
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.src[start:p.pos]
}

// exponent reads e±digits. A value too large to be kept is clamped to one that
// is refused later, unless the number is zero.
func (p *parser) exponent() (int, bool) {
	p.pos++ // the e
	negative := p.accept('-')
	if !negative {
		p.accept('+')
	}
	text := p.digits()
	if len(text) == 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n > 4*maxExponent {
		n = 4 * maxExponent
	}
	if negative {
		n = -n
	}
	return n, true
}

// appendNumber writes digits × 10^exponent, digits without zeros at either
// end: plain between 1e-6 and 1e21, scientific elsewhere.
func appendNumber(out []byte, negative bool, digits []byte, exponent int) []byte {
	if negative {
		out = append(out, '-')
	}
	point := len(digits) + exponent // where the decimal point stands, counted from the first digit
	switch {
	case exponent >= 0 && point <= 21:
		out = append(out, digits...)
		return append(out, bytes.Repeat([]byte("0"), exponent)...)
	case point > 0 && point <= 21:
		out = append(out, digits[:point]...)
		out = append(out, '.')
		return append(out, digits[point:]...)
	case point > -6 && point <= 0:
		out = append(out, "0."...)
		out = append(out, bytes.Repeat([]byte("0"), -point)...)
		return append(out, digits...)
	}
	out = append(out, digits[0])
	if len(digits) > 1 {
		out = append(out, '.')
		out = append(out, digits[1:]...)
	}
	out = append(out, 'e')
	return strconv.AppendInt(out, int64(point-1), 10)
}
