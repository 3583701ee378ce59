package policy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/glob"
)

// place is one pattern of a rule's paths. A pattern for a URL is matched part
// by part, so that a star for a host cannot reach into the path.
type place struct {
	whole  glob.Glob // paths, and hosts when it is no URL
	isURL  bool
	scheme glob.Glob
	host   glob.Glob
	path   glob.Glob
}

func compilePlace(pattern string) (place, error) {
	whole, err := glob.Compile(pattern)
	if err != nil {
		return place{}, err
	}
	p := place{whole: whole}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		return p, nil
	}
	p.isURL = true
	host, path, _ := strings.Cut(rest, "/")
	for _, part := range []struct {
		to   *glob.Glob
		text string
		name string
	}{{&p.scheme, scheme, "scheme"}, {&p.host, host, "host"}, {&p.path, "/" + path, "path"}} {
		g, err := glob.Compile(part.text)
		if err != nil {
			return place{}, fmt.Errorf("the %s: %w", part.name, err)
		}
		*part.to = g.Fold()
		if part.name == "path" {
			*part.to = g
		}
	}
	return p, nil
}

func (p place) matchURL(u call.URL) bool {
	withPort := u.Host + ":" + strconv.Itoa(u.Port)
	if !p.isURL {
		return p.whole.Fold().Match(u.Host) || p.whole.Fold().Match(withPort)
	}
	path := u.Path
	if path == "" {
		path = "/"
	}
	return p.scheme.Match(u.Scheme) && (p.host.Match(u.Host) || p.host.Match(withPort)) && p.path.Match(path)
}

func (p place) matchPath(c call.Path) bool {
	return !p.isURL && (p.whole.Match(c.Path) || c.Text != "" && p.whole.Match(c.Text))
}

// inside says whether the pattern can match something below a folder: surely,
// when it names a place there, and perhaps, when only its open end reaches it.
func (p place) inside(folder string) answer {
	lit, dir := p.whole.Literal(), strings.TrimSuffix(folder, "/")+"/"
	switch {
	case p.isURL:
		return no
	case strings.HasPrefix(lit, dir):
		return yes
	case strings.HasPrefix(dir, lit):
		return unclear
	}
	return no
}
