package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zeph-tools/zeph-mcp-tools/approval"
)

// newApprovals answers, from a terminal, what a running server asks and its
// client cannot show.
func newApprovals(s streams, _ *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "see and answer what running servers want a person to approve", Args: cobra.NoArgs,
		Long: "See and answer what the servers you are running want a person to approve.\n\n" +
			"A yes lets exactly that call run once, when it is made again before the question expires.",
		RunE: func(*cobra.Command, []string) error {
			return usage(errors.New("approvals takes a command: list, show, approve or deny"))
		},
	}
	var asJSON bool
	cmd.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	add := func(use, short string, args cobra.PositionalArgs, op approval.Op, text func(io.Writer, []approval.View) error) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: args,
			RunE: func(cmd *cobra.Command, args []string) error {
				id := strings.Join(args, "")
				views, asked := askServers(cmd.Context(), op, id)
				if asked != nil && len(views) == 0 {
					return asked
				}
				show := text
				if asJSON {
					show = jsonOf(op)
				}
				return errors.Join(show(s.out, views), asked)
			},
		})
	}
	add("list", "every open question, oldest first", cobra.NoArgs, approval.OpList, printList)
	add("show ID", "one question, whole", oneID, approval.OpShow, printOne(""))
	add("approve ID", "let that very call run once", oneID, approval.OpApprove, printOne("Approved, once.\n\n"))
	add("deny ID", "refuse it; takes back an approval that was not used yet", oneID, approval.OpDeny, printOne("Denied.\n\n"))
	return cmd
}

func oneID(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(errors.New("give the ID of one approval: zeph-mcp-tools approvals list shows them"))
	}
	return nil
}

// runDir is where running servers have their sockets.
func runDir(state string) string { return filepath.Join(state, "run") }

func askServers(ctx context.Context, op approval.Op, id string) ([]approval.View, error) {
	state, err := stateDir()
	if err != nil {
		return nil, err
	}
	views, err := approval.Ask(ctx, runDir(state), op, id)
	if errors.Is(err, approval.ErrNotFound) {
		err = fmt.Errorf("no running server of yours has an open question %s: it was answered or used, or has expired", id)
	}
	return views, err
}

func jsonOf(op approval.Op) func(io.Writer, []approval.View) error {
	return func(w io.Writer, views []approval.View) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		if op == approval.OpList {
			return enc.Encode(append([]approval.View{}, views...)) // never null
		}
		return enc.Encode(views[0])
	}
}

func printList(w io.Writer, views []approval.View) error {
	if len(views) == 0 {
		_, err := fmt.Fprintln(w, "nothing waits for an answer")
		return err
	}
	var b strings.Builder
	b.WriteString("APPROVAL\tSTATE\tEXPIRES\tCALLER\tSESSION\tTOOL\tWHAT\n")
	for _, v := range views {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.ID, state(v), expiry(v), v.Caller, v.Session, v.Tool, short(v.Summary))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, err := io.WriteString(t, b.String())
	return errors.Join(err, t.Flush())
}

func printOne(before string) func(io.Writer, []approval.View) error {
	return func(w io.Writer, views []approval.View) error {
		v := views[0]
		tail := ""
		if before == "" {
			tail = ", " + state(v)
		}
		_, err := fmt.Fprintf(w, "%s%s\nAsked for caller %s, session %s, at %s; expires %s%s\n",
			before, v.Question, v.Caller, v.Session, v.Created.Local().Format(time.TimeOnly), expiry(v), tail)
		return err
	}
}

func state(v approval.View) string {
	if v.Approved {
		return "approved"
	}
	return "waiting"
}

func expiry(v approval.View) string {
	return fmt.Sprintf("%s (in %s)", v.Expires.Local().Format(time.TimeOnly), max(0, time.Until(v.Expires)).Round(time.Second))
}

// short cuts what a list has no room for; show has it whole.
func short(s string) string {
	const most = 72
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// control lets the person answer out of band until ctx ends. Every answer is
// in the audit log before it counts.
func (e *engine) control(ctx context.Context) error {
	return e.approvals.ServeControl(ctx, runDir(e.state), func(a approval.Act) error {
		return e.audit.Event("approval", map[string]any{
			"approval_id": a.ID, "answer": string(a.Op), "uid": a.UID, "pid": a.PID,
		})
	})
}
