// Package audit keeps an append-only record of what was asked, judged and done.
//
// The log is one JSON object a line, each line chained to the one before it by
// SHA-256, in a file that only its owner can read. [Verify] finds a line that
// was altered, removed, doubled, moved or cut. The chain has no key, so it
// shows damage and careless tampering; who can write the file and rebuild it
// as a whole, or drop lines from its end, is found only by comparing with a
// last hash that was noted elsewhere ([Report.LastHash]).
//
// A call that cannot be recorded must not run: [Log.Begin] proves, before it
// does, that one more record will fit.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/internal/redact"
)

// Log is an open audit log. It is safe for concurrent use, and several
// processes may append to the same file.
type Log struct {
	cfg    Config
	redact *redact.Redactor
	log    *slog.Logger
	chain  *chain // nil when the mode is off
}

// Open opens the log at cfg.Path, or audit.jsonl in stateDir when that is
// empty, and makes the folder (0700) and the file (0600) as needed. A last line
// torn by a crash is kept, and the log goes on after it with a record that says
// so. Open refuses a folder that others can write to and a file that is not
// ours. With mode off it opens nothing.
func Open(cfg Config, stateDir string, log *slog.Logger) (*Log, error) {
	if log == nil {
		return nil, errors.New("open audit log: no logger")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, redact: redact.New(), log: log.With("component", "audit")}
	if cfg.Mode == Off {
		return l, nil
	}
	path := cfg.Path
	if path == "" {
		if !filepath.IsAbs(stateDir) {
			return nil, fmt.Errorf("open audit log: state folder %q is not absolute", stateDir)
		}
		path = filepath.Join(stateDir, "audit.jsonl")
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	c, err := openChain(path, cfg.FlushEachRecord)
	if err != nil {
		return nil, fmt.Errorf("open audit log: %w", err)
	}
	l.chain = c
	return l, nil
}

// makeFolder makes the log's folder for its owner only, and refuses one in
// which others could swap the file.
func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("%w: name a folder that can be written to in XDG_STATE_HOME or tools.audit.path", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others can write to the folder %s: run chmod go-w on it or set tools.audit.path", dir)
	}
	return nil
}

// Path is where the log is kept; empty when the mode is off.
func (l *Log) Path() string {
	if l.chain == nil {
		return ""
	}
	return l.chain.path
}

// Close closes the file. Calls that begin afterwards are refused, and entries
// that are still open cannot be finished.
func (l *Log) Close() error {
	if l.chain == nil {
		return nil
	}
	return l.chain.close()
}

// Entry is the promise that one call can be recorded. It need not be kept.
type Entry struct {
	log  *Log
	id   string
	done atomic.Bool
}

// Begin proves that one more record can be written: the file is still the one
// at its path and there is space for it on the disk. An error means that the
// call must not run; it is a [*call.Error].
func (l *Log) Begin(id string) (*Entry, error) {
	e := &Entry{log: l, id: id}
	if l.chain == nil {
		return e, nil
	}
	if err := l.chain.prove(); err != nil {
		if l.cfg.Mode != BestEffort {
			return nil, unavailable(err)
		}
		l.lost("call", id, err)
	}
	return e, nil
}

// Finish appends the record of the call as one line. It may be called once.
// An error means that the call went unrecorded, and its result must not be
// given out; it is a [*call.Error].
func (e *Entry) Finish(r Record) error {
	if e.done.Swap(true) {
		return unavailable(errors.New("the call was recorded before"))
	}
	if r.CallID == "" {
		r.CallID = e.id
	}
	body, err := r.encode(e.log.redact)
	if err != nil {
		return unavailable(err)
	}
	return e.log.append("call", r.CallID, body)
}

// Event appends what is not a call: a start, a stop, a hop of an outbound
// connection. Kind is a short snake_case word other than those the log itself
// uses (call, recovered, continued); fields are redacted.
func (l *Log) Event(kind string, fields map[string]any) error {
	if !validKind(kind) {
		return fmt.Errorf("audit event %q: not a kind of event", kind)
	}
	body, err := l.event(fields)
	if err != nil {
		return fmt.Errorf("audit event %s: %w", kind, err)
	}
	return l.append(kind, "", body)
}

func (l *Log) event(fields map[string]any) ([]byte, error) {
	raw, err := marshal(fields)
	if err != nil {
		return nil, err
	}
	raw, _ = l.redact.Kept(raw)
	return marshal(map[string]json.RawMessage{"event": cutJSON(raw, MaxLine/2)})
}

// append writes one line, or says in the program's log that it could not when
// the mode lets it go on.
func (l *Log) append(kind, id string, body []byte) error {
	if l.chain == nil {
		return nil
	}
	err := l.chain.append(time.Now(), kind, body)
	if err == nil {
		return nil
	}
	if l.cfg.Mode == BestEffort {
		l.lost(kind, id, err)
		return nil
	}
	return unavailable(err)
}

func (l *Log) lost(kind, id string, err error) {
	l.log.Error("audit record lost", "kind", kind, "call_id", id, "error", err)
}

func unavailable(err error) error {
	return &call.Error{
		Category: call.CategoryServerError, Code: "audit_unavailable", Phase: call.PhaseSetup, Retryable: true,
		Message:    "the audit log cannot be written, so nothing runs",
		Suggestion: "tell the operator: free disk space or repair the audit log's folder",
		Cause:      err,
	}
}

func validKind(kind string) bool {
	if kind == "" || len(kind) > 40 || kind == "call" || kind == kindRecovered || kind == kindContinued {
		return false
	}
	for _, c := range kind {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return true
}
