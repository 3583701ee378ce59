package ipi

import (
	"math"
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
	return d(c.r, o.r)+d(c.g, o.g)+d(c.b, o.b) <= 24
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
	if i := strings.Index(v, "hsl"); i >= 0 {
		return hsl(v[i:])
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

// hsl reads hue, saturation and lightness.
func hsl(v string) color {
	_, args, _ := strings.Cut(v, "(")
	args, _, _ = strings.Cut(args, ")")
	parts := strings.FieldsFunc(args, func(r rune) bool { return r == ',' || r == ' ' || r == '/' })
	if len(parts) < 3 {
		return color{}
	}
	var n [3]float64
	for i := range n {
		f, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSuffix(parts[i], "%"), "deg"), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return color{}
		}
		n[i] = f
	}
	if len(parts) > 3 && isNear(parts[3], 0.05) {
		return color{transparent: true}
	}
	hue, sat, light := math.Mod(math.Mod(n[0], 360)+360, 360), min(max(n[1]/100, 0), 1), min(max(n[2]/100, 0), 1)
	channel := func(offset float64) int {
		k := math.Mod(offset+hue/30, 12)
		return int(math.Round(255 * (light - sat*min(light, 1-light)*max(-1, min(k-3, 9-k, 1)))))
	}
	return color{known: true, r: channel(0), g: channel(8), b: channel(4)}
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
	if v == "transparent" {
		return color{transparent: true}
	}
	_, after, ok := strings.Cut(" white ffffff black 000000 ghostwhite f8f8ff floralwhite fffaf0 mintcream f5fffa azure f0ffff"+
		" snow fffafa ivory fffff0 whitesmoke f5f5f5 red ff0000 green 008000 blue 0000ff yellow ffff00"+
		" gray 808080 grey 808080 silver c0c0c0 ", " "+v+" ")
	if !ok {
		return color{}
	}
	h, _, _ := strings.Cut(after, " ")
	return hexColor(h)
}
