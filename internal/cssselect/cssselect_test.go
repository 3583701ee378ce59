package cssselect

import (
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

const page = `<!doctype html><body><div id=main class="a b"><h1>T</h1><p class=x>1<span>2</span></p><p>3</p>
<ul><li>i</li><li class="x y" data-k='a,b > c'>ii</li><li>iii</li></ul><a href="/q?a=1,2">l</a></div>
<section><div><div class=a><p>deep <b>b</b></p></div></div><svg viewBox="0 0 1 1"><path d=""/></svg></section></body>`

func parse(tb testing.TB, text string) *html.Node {
	tb.Helper()
	n, err := html.Parse(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

func selectors() []string {
	return []string{
		"*", "p", "P", "#main", ".x", "li.x.y", "div p", "div > p", "body>div>p", "h1 + p", "h1 ~ p", "h1+p~ul li", "div div div p b", "p, li , a",
		"li:nth-child(2)", "li:not(.x)", "div:has(h1)", "ul:has(.x)", `li[data-k="a,b > c"]`, `a[href*="a=1,2"]`, "[class~=y]",
		"p:contains('deep')", "section div.a p", ".nope p", "body .x span", "svg path", "li:first-child + li", "html body #main.a.b > ul > li.x",
		"p:empty", "div\n>\np", "li:last-child", "p:matches(\"[0-9]\")", "div:not(#main)", "a[href^='/q']:not([rel])",
	}
}

// TestAgainstCascadia: what is evaluated by sets is what backtracking finds.
func TestAgainstCascadia(t *testing.T) {
	t.Parallel()
	doc := parse(t, page)
	ix := NewIndex(doc)
	for _, text := range selectors() {
		want, err := cascadia.ParseGroup(text)
		if err != nil {
			t.Fatalf("%q is not a good test: %v", text, err)
		}
		s, err := Parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, all := ix.Select(s), backtrack(doc, want)
		if !slices.Equal(got, all) {
			t.Errorf("%q: %d elements, want %d", text, len(got), len(all))
		}
	}
}

// backtrack asks cascadia, which also offers text nodes to some pseudo-classes.
func backtrack(doc *html.Node, m cascadia.Matcher) []*html.Node {
	return slices.DeleteFunc(cascadia.QueryAll(doc, m), func(n *html.Node) bool { return n.Type != html.ElementNode })
}

func TestBadSelectors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", ",", "p,", "p >", "> p", "p > > a", "[[[invalid", "p:unknown", "p::before", "li:nth-child(", `a[href="x]`, "()",
		"div:has(:has(p))", "div:has(a b)", "div:not(a > b)", "div:not(:has(p b))", "p..x", "##",
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q was accepted: %+v", text, s)
		}
	}
}

func TestSpecificity(t *testing.T) {
	t.Parallel()
	order := []string{"p", "div p", ".x", "p.x", "#main", "#main p.x"}
	for i := 1; i < len(order); i++ {
		a, _ := Parse(order[i-1])
		b, _ := Parse(order[i])
		if a.Specificity() >= b.Specificity() {
			t.Errorf("%q is not below %q", order[i-1], order[i])
		}
	}
}

// TestNoBlowUp: a failing chain on a deep page is where backtracking dies. With
// backtracking this would not end before the test's own deadline.
func TestNoBlowUp(t *testing.T) {
	t.Parallel()
	doc := parse(t, strings.Repeat("<div>", 400)+strings.Repeat("<i>x</i>", 20000))
	s, err := Parse(".nope " + strings.Repeat("* ", 200) + "i, div " + strings.Repeat("* ", 150) + "b, div:has(u)")
	if err != nil {
		t.Fatal(err)
	}
	if got := NewIndex(doc).Select(s); len(got) != 0 {
		t.Errorf("%d elements", len(got))
	}
}

// FuzzSelector: no panic, and whatever both sides accept they answer alike.
func FuzzSelector(f *testing.F) {
	for _, s := range selectors() {
		f.Add(s)
	}
	doc := parse(f, page)
	ix := NewIndex(doc)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 60 {
			return
		}
		s, err := Parse(text)
		if err != nil {
			return
		}
		want, err := cascadia.ParseGroup(text)
		if err != nil {
			return
		}
		if got := ix.Select(s); !slices.Equal(got, backtrack(doc, want)) {
			t.Errorf("%q: other elements than by backtracking", text)
		}
	})
}
