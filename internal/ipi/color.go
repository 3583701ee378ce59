package ipi

import (
	"strconv"
	"strings"
)

// color is a CSS colour as far as it was understood. The zero color is not
// known and is like no other.
type color struct {
	known       bool
	transparent bool
	r, g, b     int
}

// like reports whether text in c on o cannot be told from its background.
func (c color) like(o color) bool {
	if !c.known || !o.known {
		return false
	}
	d := func(a, b int) int { return max(a-b, b-a) }
	return d(c.r, o.r)+d(c.g, o.g)+d(c.b, o.b) <= 12
}

// parseColor reads the first colour in a value; a background with an image is
// not known.
func parseColor(v string) color {
	v = strings.TrimSpace(v)
	if strings.Contains(v, "url(") || strings.Contains(v, "gradient(") {
		return color{}
	}
	if i := strings.Index(v, "rgb"); i >= 0 {
		return rgb(v[i:])
	}
	for f := range strings.FieldsSeq(v) {
		if h, ok := strings.CutPrefix(f, "#"); ok {
			return hexColor(h)
		}
		if c := named(f); c.known || c.transparent {
			return c
		}
	}
	return color{}
}

func rgb(v string) color {
	_, args, _ := strings.Cut(v, "(")
	args, _, _ = strings.Cut(args, ")")
	parts := strings.FieldsFunc(args, func(r rune) bool { return r == ',' || r == ' ' || r == '/' })
	if len(parts) < 3 {
		return color{}
	}
	var n [3]int
	for i := range n {
		f, err := strconv.ParseFloat(strings.TrimSuffix(parts[i], "%"), 64)
		if err != nil {
			return color{}
		}
		if strings.HasSuffix(parts[i], "%") {
			f *= 2.55
		}
		n[i] = int(f)
	}
	if len(parts) > 3 && isNear(parts[3], 0.05) {
		return color{transparent: true}
	}
	return color{known: true, r: n[0], g: n[1], b: n[2]}
}

func hexColor(h string) color {
	if len(h) == 3 || len(h) == 4 {
		var b strings.Builder
		for i := range len(h) {
			b.WriteByte(h[i])
			b.WriteByte(h[i])
		}
		h = b.String()
	}
	n, err := strconv.ParseUint(h, 16, 64)
	if err != nil || len(h) != 6 && len(h) != 8 {
		return color{}
	}
	if len(h) == 8 {
		if n&0xff < 13 {
			return color{transparent: true}
		}
		n >>= 8
	}
	return color{known: true, r: int(n >> 16), g: int(n >> 8 & 0xff), b: int(n & 0xff)}
}

func named(v string) color {
	switch v {
	case "transparent":
		return color{transparent: true}
	case "white":
		return hexColor("ffffff")
	case "black":
		return hexColor("000000")
	case "snow":
		return hexColor("fffafa")
	case "ivory":
		return hexColor("fffff0")
	case "whitesmoke":
		return hexColor("f5f5f5")
	case "red":
		return hexColor("ff0000")
	case "green":
		return hexColor("008000")
	case "blue":
		return hexColor("0000ff")
	case "yellow":
		return hexColor("ffff00")
	case "gray", "grey":
		return hexColor("808080")
	case "silver":
		return hexColor("c0c0c0")
	}
	return color{}
}
