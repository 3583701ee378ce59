package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	zephmcptools "github.com/zeph-tools/zeph-mcp-tools"
	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// newDocs is hidden: it makes the generated pages of docs/.
func newDocs(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "docs tools|config", Short: "print a generated page of the documentation", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "tools":
				return toolsPage(s)
			case "config":
				return configPage(s.out)
			}
			return usage(errors.New("docs makes two pages: tools or config"))
		},
	}
}

// toolsPage documents every tool, with all of them turned on.
func toolsPage(s streams) (err error) {
	dir, err := os.MkdirTemp("", "zeph-docs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	conf := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("none"), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(conf, fmt.Appendf(nil, "[tools.search]\nenabled = true\napi_key_file = %q\n", filepath.Join(dir, "key")), 0o600); err != nil {
		return err
	}
	f := flags{config: conf, workspace: []string{dir}, logLevel: "error"}
	j, err := f.judge(s)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("# Tools\n\nMade from the binary by `make docs`; do not edit. Arguments in bold are required; no others are accepted.\n")
	for _, t := range j.registry.List() {
		if err := describeTool(&b, t); err != nil {
			return err
		}
	}
	_, err = io.WriteString(s.out, b.String())
	return err
}

func describeTool(b *strings.Builder, t call.Spec) error {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", t.Name, t.Description)
	fmt.Fprintf(b, "Effect: %s · destructive: %s · idempotent: %s · open world: %s\n\n",
		t.Effect, yesNo(t.Destructive), yesNo(t.Idempotent), yesNo(t.OpenWorld))
	var in struct {
		Required   []string                   `json:"required"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(t.Input, &in); err != nil {
		return err
	}
	order, err := keys(t.Input, "properties")
	if err != nil {
		return err
	}
	for _, name := range order {
		shown := name
		for _, r := range in.Required {
			if r == name {
				shown = "**" + name + "**"
			}
		}
		fmt.Fprintf(b, "- %s `%s`\n", shown, in.Properties[name])
	}
	fmt.Fprintf(b, "\nResult: `%s`\n", t.Output)
	return nil
}

func yesNo(t call.Toggle) string {
	if t.Bool() {
		return "yes"
	}
	return "no"
}

// keys returns the member names of an object's member in the order they are
// written, which is the order they are meant to be read in.
func keys(raw json.RawMessage, member string) ([]string, error) {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, err
	}
	if len(outer[member]) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(outer[member]))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var out []string
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		out = append(out, fmt.Sprint(name))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// configPage is the example with its comments, which names every key.
func configPage(w io.Writer) error {
	_, err := fmt.Fprintf(w, "# Configuration\n\nMade from `config.example.toml` by `make docs`; do not edit. Every key, its default, and why it is there.\n"+
		"`zeph-mcp-tools config init` writes this file, `config check` checks yours, `config show` prints what is in force.\n\n"+
		"The file is `--config`, else `$ZEPH_MCP_CONFIG`, else `$XDG_CONFIG_HOME/zeph-mcp-tools/config.toml`; never one from a workspace.\n\n```toml\n%s```\n", zephmcptools.ExampleConfig)
	return err
}
