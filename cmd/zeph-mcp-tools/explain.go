package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/pipeline"
)

func newExplain(s streams, f *flags) *cobra.Command {
	var asJSON, batch bool
	cmd := &cobra.Command{
		Use:   "explain TOOL ARGS-JSON",
		Short: "say what would happen to a call, and why, without running it",
		Long: "Say what would happen to a call, and why, without running, opening or looking up anything.\n\n" +
			"Exit status: 0 allow, 10 confirm, 20 deny, 2 bad usage. With --batch, one {\"tool\":…,\"args\":{…}} a line is read\n" +
			"from standard input and one JSON verdict a line is printed; the exit status is 0 when every line was judged.",
		Args: func(_ *cobra.Command, args []string) error {
			if batch && len(args) != 0 {
				return usage(errors.New("explain --batch reads calls from standard input and takes no arguments"))
			}
			if !batch && len(args) != 2 {
				return usage(errors.New("explain takes TOOL and ARGS-JSON, for example: explain bash '{\"command\":\"ls\"}'"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := f.judge(s)
			if err != nil {
				return err
			}
			if batch {
				return j.explainBatch(cmd.Context(), s)
			}
			v := j.explain(cmd.Context(), args[0], json.RawMessage(args[1]))
			if err := show(s.out, v, asJSON); err != nil {
				return err
			}
			return silent(verdictCode(v.Verdict))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the verdict as JSON")
	cmd.Flags().BoolVar(&batch, "batch", false, "judge one call a line from standard input")
	return cmd
}

func verdictCode(v string) int {
	switch v {
	case gates.Allow.String():
		return exitOK
	case gates.Confirm.String():
		return exitNotApproved
	}
	return exitDenied
}

func (j *judge) explain(ctx context.Context, tool string, args json.RawMessage) pipeline.Verdict {
	return pipeline.Explain(ctx, j.registry, j.chain, pipeline.Request{
		Tool: tool, Args: args, Session: "explain", Caller: localCaller("cli"),
	})
}

// explainBatch judges each line alone. A line that is no call is denied like
// any other bad argument, so line numbers always match.
func (j *judge) explainBatch(ctx context.Context, s streams) error {
	in := bufio.NewReaderSize(s.in, 1<<16)
	out := bufio.NewWriter(s.out)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := enc.Encode(j.explainLine(ctx, line)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return fmt.Errorf("read calls: %w", err)
		}
	}
}

func (j *judge) explainLine(ctx context.Context, line []byte) pipeline.Verdict {
	var c struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal(line, &c); err != nil || c.Tool == "" {
		return pipeline.Refuse(call.ArgError("", "the line is not a JSON object with tool and args", `write {"tool":"bash","args":{"command":"ls"}}`))
	}
	return j.explain(ctx, c.Tool, c.Args)
}

func show(w io.Writer, v pipeline.Verdict, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s", v.Verdict)
	if v.Code != "" {
		fmt.Fprintf(&b, "  %s (gate %s)", v.Code, v.Gate)
	}
	b.WriteByte('\n')
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-12s%s\n", label, text)
		}
	}
	line("what", v.Facts.Summary)
	line("reason", v.Reason)
	line("suggestion", v.Suggestion)
	for _, c := range v.Facts.Commands {
		line("command", at(c.Pos)+strings.Join(c.Argv, " ")+in(c.Dir))
	}
	for _, p := range v.Facts.Reads {
		line("reads", at(p.Pos)+p.Path+" ("+p.Place.String()+")")
	}
	for _, p := range v.Facts.Writes {
		line("writes", at(p.Pos)+p.Path+" ("+p.Place.String()+")")
	}
	for _, u := range v.Facts.URLs {
		line("url", u.URL)
	}
	for _, u := range v.Facts.Unknown {
		line("unknown", at(u.Pos)+u.Text+": "+u.Why)
	}
	for _, t := range v.Trail {
		line("gate", strings.TrimSpace(t.Gate+" "+t.Verdict+" "+t.Code))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// at is the place of something in the command, before it; "" when it has none.
func at(p call.Pos) string {
	if p.Line == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d ", p.Line, p.Column)
}

// in names the folder a command runs in, when it is not the call's.
func in(dir string) string {
	switch dir {
	case "":
		return ""
	case call.DirUnknown:
		return " (in a folder that is not known)"
	}
	return " (in " + dir + ")"
}
