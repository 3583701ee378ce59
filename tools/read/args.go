package read

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/workspace"
)

// readArgs are the arguments of read.
type readArgs struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

const readInput = `{"type":"object","properties":{"path":{"type":"string"},` +
	`"offset":{"type":"integer","minimum":0,"description":"first line, from 0"},` +
	`"limit":{"type":"integer","minimum":1,"description":"lines"}},"required":["path"],"additionalProperties":false}`

const readOutput = `{"type":"object","properties":{"content":{"type":"string"},"lines":{"type":"integer"},` +
	`"total_lines":{"type":"integer"},"next_offset":{"type":"integer"},"truncated":{"type":"boolean"}}}`

// findArgs are the arguments of find_path.
type findArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	MaxResults int    `json:"max_results"`
	Ignored    bool   `json:"ignored"`
}

const findInput = `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},` +
	`"max_results":{"type":"integer","minimum":1},` +
	`"ignored":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`

const findOutput = `{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"}},` +
	`"truncated":{"type":"boolean"}}}`

// grepArgs are the arguments of grep.
type grepArgs struct {
	Pattern       string `json:"pattern"`
	Path          string `json:"path"`
	Glob          string `json:"glob"`
	CaseSensitive *bool  `json:"case_sensitive"`
	Context       int    `json:"context"`
	MaxResults    int    `json:"max_results"`
	Output        string `json:"output"`
	Ignored       bool   `json:"ignored"`
}

const grepInput = `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"},` +
	`"glob":{"type":"string"},"case_sensitive":{"type":"boolean","default":true},` +
	`"context":{"type":"integer","minimum":0,"maximum":20},"max_results":{"type":"integer","minimum":1},` +
	`"output":{"enum":["content","files","count"]},"ignored":{"type":"boolean"}},` +
	`"required":["pattern"],"additionalProperties":false}`

const grepOutput = `{"type":"object","properties":{"matches":{"type":"array","items":{"type":"object"}},` +
	`"truncated":{"type":"boolean"}}}`

// listArgs are the arguments of list_directory.
type listArgs struct {
	Path string `json:"path"`
}

const listInput = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`

const listOutput = `{"type":"object","properties":{"entries":{"type":"array","items":{"type":"object"}},` +
	`"truncated":{"type":"boolean"}}}`

// base is what the four tools have in common.
type base struct {
	cfg Config
	ws  *workspace.Workspace
}

func newBase(cfg Config, ws *workspace.Workspace) (base, error) {
	if ws == nil {
		return base{}, errors.New("read: no workspace")
	}
	if err := cfg.Validate(); err != nil {
		return base{}, err
	}
	return base{cfg: cfg, ws: ws}, nil
}

// spec fills in what the four tools share: they read files and change nothing.
func spec(name, title, description, input, output string) call.Spec {
	return call.Spec{
		Name: name, Title: title, Description: strings.TrimSpace(description),
		Input: json.RawMessage(input), Output: json.RawMessage(output),
		Effect: call.ReadsFiles, Confirm: call.ConfirmByPolicy, Destructive: call.No, Idempotent: call.Yes,
		OpenWorld: call.No, Cacheable: call.No, Speculatable: call.Yes, Retryable: call.No,
	}
}

// facts are those of a tool that reads one path.
func (b base) facts(p call.Path, tool, summary string) call.Facts {
	p.By, p.Op = tool, "read"
	return call.Facts{Summary: summary, Text: p.Path, Reads: []call.Path{p}}
}

// results bounds how many results a call asks for.
func (b base) results(asked, standard int) int {
	if asked <= 0 {
		asked = standard
	}
	return min(asked, b.cfg.MaxResults)
}

// shown is a path as results show it: short inside the first root, and quoted
// when its bytes would break a line-wise listing.
func (b base) shown(p string) string { return printable(b.ws.Rel(p)) }

func printable(s string) string {
	if utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0 {
		return s
	}
	return strconv.Quote(s)
}
