package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
)

func TestNothingPrintsIt(t *testing.T) {
	t.Parallel()
	type holder struct {
		Key secret.Secret `toml:"key" json:"key"`
	}
	h := holder{Key: "hunter2"}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x", h, h, h, h.Key, h.Key, h.Key)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", h.Key, "all", h)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "key", h.Key)
	if err := json.NewEncoder(&out).Encode(h); err != nil {
		t.Fatal(err)
	}
	if err := toml.NewEncoder(&out).Encode(h); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); strings.Contains(s, "hunter2") || strings.Contains(s, fmt.Sprintf("%x", "hunter2")) || !strings.Contains(s, "[redacted]") {
		t.Error(s)
	}
	if h.Key.Reveal() != "hunter2" || secret.Secret("").String() != "" {
		t.Error("a secret must give itself out when asked, and be empty when it is")
	}
	var back holder
	if _, err := toml.Decode(`key = "x"`, &back); err != nil || back.Key.Reveal() != "x" {
		t.Error(err)
	}
}
