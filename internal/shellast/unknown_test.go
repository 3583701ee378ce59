package shellast_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zeph-tools/zeph-mcp-tools/gates/command"
)

// TestUnknownPaths holds what the facts say about operands whose value nobody
// knows: where they stand, whose they are, and what is done with them.
func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	f := newFixture(t, command.Default(), strict())
	for _, c := range []struct {
		command string
		want    []string
	}{
		{`cat "$X"`, []string{`1:5 cat read "$X"`}},
		{`cat file.txt "$X" sub/a.txt`, []string{`1:14 cat read "$X"`}},
		{`cat $(f)`, []string{`1:5 cat read $(f)`}},
		{`cat "sub/$X"`, []string{`1:5 cat read "sub/$X"`}},
		{`cp a "$DEST"`, []string{`1:6 cp write "$DEST"`}},
		{`cp "$A" "$B"`, []string{`1:4 cp read "$A"`, `1:9 cp write "$B"`}},
		{`mv "$A" sub`, []string{`1:4 mv move "$A"`}},
		{`ln -s x "$L"`, []string{`1:9 ln link "$L"`}},
		{`chmod 644 "$F"`, []string{`1:11 chmod mode "$F"`}},
		{`rm "$F"`, []string{`1:4 rm delete "$F"`}},
		{`echo x > "$OUT"`, []string{`1:10 redirect redirect "$OUT"`}},
		{`echo x >> "$OUT"`, []string{`1:11 redirect redirect "$OUT"`}},
		{`sort < "$IN"`, []string{`1:8 redirect read "$IN"`}},
		{`cat <> "$IO"`, []string{`1:8 redirect redirect "$IO"`, `1:8 redirect read "$IO"`}},
		{`{ echo a; } > "$OUT"`, []string{`1:15 redirect redirect "$OUT"`}},
		{`go test -coverprofile="$P" ./...`, []string{`1:9 go write -coverprofile="$P"`}},
		{`tar -xf "$A" -C "$D"`, []string{`1:17 tar write "$D"`, `1:9 tar read "$A"`}},
		{`mytool "$X"`, []string{`1:8 mytool  "$X"`}},
		{`mytool --in="$X"`, []string{`1:8 mytool  "$X"`}},
		{`[ -f "$X" ]`, []string{`1:6 [ test "$X"`}},
		{`[[ -f $X ]]`, []string{`1:7 [[ test $X`}},
		{`cd "$D" && cat file.txt`, []string{`1:4 cd test "$D"`, `1:16 cat read file.txt`}},
		{`cd "$D" && grep -r x`, []string{`1:4 cd test "$D"`, `1:12 grep read .`}},
		{`git -C "$D" status`, []string{`1:8 git read "$D"`}},
		{`while read -r f; do wc -l "$f"; done < file.txt`, []string{`1:27 wc read "$f"`}},
		{`find . -name '*.go' | xargs wc -l`, []string{`1:32 wc read …`}},
		{`sh -c 'cat "$1"' _ "$X"`, []string{`1:20 sh  "$X"`, `1:7 cat read "$1"`}},
		{"ls\ncat \"$X\"", []string{`2:5 cat read "$X"`}},
		// nothing unknown about these
		{`echo "$X"`, nil},
		{`printf '%s\n' "$X"`, nil},
		{`git commit -m "$MSG"`, nil},
		{`docker run "$IMAGE"`, nil},
		{`head -n "$N" file.txt`, nil},
		{`grep "$PATTERN" file.txt`, nil},
		{`head -c $((1+2)) file.txt`, nil},
		{`cat log.$$`, nil},
		{`X=file.txt; cat "$X"`, nil},
		{`for f in *.go; do wc -l *.go; done`, nil},
		{`find . -name '*.go' -exec wc -l {} +`, nil},
		{`cat *.txt`, nil},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			_, facts := f.judge(bashArgs{Command: c.command})
			var got []string
			for _, u := range facts.Unknown {
				if u.Why == "" || u.Code {
					t.Errorf("%+v: no reason, or taken for code", u)
				}
				got = append(got, fmt.Sprintf("%d:%d %s %s %s", u.Line, u.Column, u.By, u.Op, u.Text))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
