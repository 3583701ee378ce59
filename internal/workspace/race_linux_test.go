package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// A folder is swapped for a link to the outside while files below it are read
// and written: nothing outside is ever seen or touched.
func TestSwapRace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	mkdir(t, f.ws+"/d")
	write(t, f.ws+"/d/secret.txt", "inside")
	write(t, f.out+"/secret.txt", "outside")
	if err := os.Symlink("../outside", f.ws+"/evil"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, f.ws+"/d", unix.AT_FDCWD, f.ws+"/evil", unix.RENAME_EXCHANGE); err != nil {
				return // the file system cannot exchange: the loop below still runs
			}
		}
	})
	read := 0
	for range 3000 {
		p := f.ResolveFile("d/secret.txt", true)
		if p.Place != call.PlaceWorkspace {
			continue
		}
		if file, err := f.OpenFile("s", p, os.O_RDONLY, 0); err == nil {
			text, err := io.ReadAll(file)
			if err != nil || !strings.HasPrefix(string(text), "inside") {
				t.Errorf("read %q, %v", text, err)
			}
			file.Close()
			read++
		}
		if _, err := f.WriteAtomic("s", p, []byte("inside too"), WriteOptions{}); err != nil && !isRaceError(err) {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if text, err := os.ReadFile(f.out + "/secret.txt"); err != nil || string(text) != "outside" {
		t.Errorf("outside holds %q, %v", text, err)
	}
	if list, err := os.ReadDir(f.out); err != nil || len(list) != 1 {
		t.Errorf("outside has %v, %v", list, err)
	}
	t.Logf("%d reads", read)
}

func isRaceError(err error) bool {
	return errors.Is(err, ErrLink) || errors.Is(err, ErrStale) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, unix.ENOTDIR) // swapped back before it could be told
}
