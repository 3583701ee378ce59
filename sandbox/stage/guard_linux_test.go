package stage

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 12 0 99 1000 345 18446744073709551615 1"
	for name, tt := range map[string]struct {
		in             string
		threads, pages uint64
		ok             bool
	}{
		"plain":         {"7 (sh)" + rest, 12, 345, true},
		"a nasty name":  {"7 (a) 1 2 3 (b) )" + rest, 12, 345, true},
		"cut":           {"7 (sh) S 1 1 1", 0, 0, false},
		"no name":       {"7", 0, 0, false},
		"nothing":       {"", 0, 0, false},
		"no number":     {"7 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 x 0 99 1000 345 1", 0, 0, false},
		"ends early":    {"7 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 12 0 99 1000 ", 0, 0, false},
		"a huge number": {"7 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 99999999999999999999 0 99 1000 1", 999999999999999999, 1, true},
	} {
		if threads, pages, ok := parseStat([]byte(tt.in)); threads != tt.threads || pages != tt.pages || ok != tt.ok {
			t.Errorf("%s: %d, %d, %v", name, threads, pages, ok)
		}
	}
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if threads, pages, ok := parseStat(b); !ok || threads == 0 || pages < 100 {
		t.Errorf("%q: %d, %d, %v", b, threads, pages, ok)
	}
	b, err = os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	if own := ownMemory(b); own < 100<<10 || own > 1<<33 {
		t.Errorf("%s: %d", b, own)
	}
	if own := ownMemory([]byte("Rss: 9 kB\nPss_Anon:      12 kB\nPss_File: 7 kB\nPss_Shmem: 3 kB\nSwapPss:1 kB\nSwapPss:")); own != 16<<10 {
		t.Error(own)
	}
}

// FuzzStat feeds the parsers whatever a process can make the kernel print.
func FuzzStat(f *testing.F) {
	f.Add([]byte("7 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 12 0 99 1000 345 1"))
	f.Add([]byte("Pss_Anon: 12 kB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if threads, pages, ok := parseStat(b); !ok && (threads != 0 || pages != 0) {
			t.Fatal(threads, pages)
		}
		ownMemory(b)
	})
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	c := &command{}
	for i, tt := range []struct {
		own    uint64
		all    crowd
		limit  uint64
		passed time.Duration
		want   bool
	}{
		{1000, crowd{1000, 1000}, 0, 500 * ms, false}, // no limit
		{513, crowd{513, 513}, 512, 50 * ms, true},    // more than there may be
		{500, crowd{500, 500}, 512, 500 * ms, false},  // all of them, for a moment
		{400, crowd{400, 400}, 512, 1000 * ms, false}, // not all any more
		{500, crowd{500, 500}, 512, 400 * ms, false},
		{100, crowd{150, 500}, 512, 400 * ms, false}, // many have ended and are not collected
		{400, crowd{400, 400}, 512, 100 * ms, false}, // for a moment not
		{300, crowd{500, 500}, 512, 200 * ms, false},
		{300, crowd{500, 500}, 512, 100 * ms, true},   // it has most, and it lasts
		{200, crowd{500, 500}, 512, 2000 * ms, false}, // another has most
		{10, crowd{12, 500}, 512, 5000 * ms, false},   // it has nearly none
	} {
		if got := c.tooMany(tt.own, tt.all, tt.limit, tt.passed); got != tt.want {
			t.Errorf("%d: %v after %v", i, got, c.full)
		}
	}
	c = &command{grouped: true}
	if c.tooMany(500, crowd{500, 500}, 512, time.Hour) || !c.tooMany(513, crowd{513, 513}, 512, 0) {
		t.Error("of what the server looks after only too many count")
	}
}
