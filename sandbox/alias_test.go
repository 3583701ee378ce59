package sandbox

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAliases(t *testing.T) {
	t.Parallel()
	all := parseMounts(`22 1 254:0 / / rw - ext4 /dev/a rw
23 22 254:1 / /data rw - ext4 /dev/b rw
24 22 254:1 /home /home rw shared:1 - ext4 /dev/b rw
25 22 254:1 /home/u/.ssh /mnt/keys\040of\040u rw - ext4 /dev/b rw
26 22 254:1 /home /covered rw - ext4 /dev/b rw
27 22 0:5 / /covered rw - tmpfs t rw
28 22 254:1 /other /mnt/other rw - ext4 /dev/b rw
29 22 0:3 net:[4026531840] /run/ns rw - nsfs nsfs rw
30 22 254:0 /etc /mnt/etc rw - ext4 /dev/a rw
31 30 254:0 /var /mnt/etc/ssl rw - ext4 /dev/a rw
short
`)
	want := []string{
		"/data/home/u/.netrc", "/data/home/u/.ssh", "/mnt/etc/shadow", "/mnt/keys of u",
	}
	got := aliases(all, []string{"/home/u/.ssh", "/home/u/.netrc", "/etc/shadow", "/etc/ssl/private"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := aliases(nil, []string{"/etc/shadow"}); got != nil {
		t.Error(got)
	}
}
