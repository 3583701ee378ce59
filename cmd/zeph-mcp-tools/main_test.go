package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace/workspacetest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestMain lets this test binary be the program itself, so that tests run real
// processes of it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zeph-mcp-tools": main})
}

// TestScripts drives the command line: each file says in its first line what
// it proves.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true, UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status},
		Setup: func(e *testscript.Env) error {
			// A workspace below /tmp would be inside the private /tmp of commands.
			base := workspacetest.Base(t)
			e.Setenv("BASE", base)
			e.Setenv("WS", base+"/ws")
			e.Setenv("HOME", base+"/home")
			e.Setenv("XDG_STATE_HOME", base+"/state")
			e.Setenv("XDG_CONFIG_HOME", base+"/config")
			for _, d := range []string{"ws", "home", "state", "config"} {
				if err := os.Mkdir(base+"/"+d, 0o700); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// status runs a command and checks its exit status: status 20 zeph-mcp-tools ….
func status(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: status N command...")
	}
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
