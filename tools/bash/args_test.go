package bash

import (
	"errors"
	"strings"
	"testing"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

func TestArgumentsNameTheirFault(t *testing.T) {
	t.Parallel()
	for field, a := range map[string]args{
		"command":    {Command: " \n"},
		"cwd":        {Command: "ls", Cwd: strings.Repeat("a/", 4000)},
		"env.A=B":    {Command: "ls", Env: map[string]string{"A=B": ""}},
		"env.A":      {Command: "ls", Env: map[string]string{"A": "x\x00"}},
		"timeout_ms": {Command: "ls", TimeoutMS: 1 << 40},
	} {
		err := a.check(Default())
		var e *call.Error
		if !errors.As(err, &e) || e.Field != field || e.Category != call.CategoryInvalidParameters || e.Suggestion == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
}
