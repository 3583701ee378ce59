package bash_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain looks for processes that a test left behind: an anchor is a child of
// this process, and nothing it started outlives it.
func TestMain(m *testing.M) {
	code := m.Run()
	until := time.Now().Add(5 * time.Second)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, unix.ECHILD) {
			break
		}
		if time.Now().After(until) {
			fmt.Fprintln(os.Stderr, "processes are left behind")
			code = 1
			break
		}
		runtime.Gosched()
	}
	os.Exit(code)
}
