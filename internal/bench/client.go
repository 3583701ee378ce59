package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// client is a bare JSON-RPC client over a child's pipes: it adds as little of
// its own as it can.
type client struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	mu      sync.Mutex
	next    int
	waiting map[int]chan json.RawMessage
	ended   chan struct{}
}

// dial starts argv and completes the handshake.
func dial(ctx context.Context, argv []string, dir string, env []string) (*client, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, env
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &client{cmd: cmd, in: in, waiting: map[int]chan json.RawMessage{}, ended: make(chan struct{})}
	go c.read(out)
	if _, err := c.request("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "1"},
	}); err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return c, c.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

func (c *client) read(out io.Reader) {
	defer close(c.ended)
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID *int `json:"id"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		c.mu.Lock()
		ch := c.waiting[*m.ID]
		delete(c.waiting, *m.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- line
		}
	}
}

func (c *client) send(m map[string]any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.in.Write(append(b, '\n'))
	return err
}

func (c *client) request(method string, params map[string]any) (json.RawMessage, error) {
	ch := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.next++
	id := c.next
	c.waiting[id] = ch
	c.mu.Unlock()
	if err := c.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	select {
	case line := <-ch:
		return line, nil
	case <-c.ended:
		return nil, errors.New("the server ended")
	case <-time.After(time.Minute):
		return nil, errors.New("no answer in a minute")
	}
}

// call makes one tool call and says how long it took. A result that is an
// error is an error: a refused call would look fast.
func (c *client) call(tool string, args map[string]any) (time.Duration, error) {
	began := time.Now()
	line, err := c.request("tools/call", map[string]any{"name": tool, "arguments": args})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	var m struct {
		Error  json.RawMessage `json:"error"`
		Result struct {
			IsError bool            `json:"isError"`
			Content json.RawMessage `json:"content"`
		} `json:"result"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return 0, err
	}
	if m.Error != nil || m.Result.IsError {
		return 0, fmt.Errorf("call failed: %s%s", m.Error, m.Result.Content)
	}
	return took, nil
}

// rate makes total calls from n callers and returns calls a second.
func (c *client) rate(n, total int) (float64, error) {
	work := make(chan struct{}, total)
	for range total {
		work <- struct{}{}
	}
	close(work)
	errs := make(chan error, n)
	began := time.Now()
	for range n {
		go func() {
			for range work {
				if _, err := c.call("bash", map[string]any{"command": "echo hi"}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	return float64(total) / time.Since(began).Seconds(), err
}

// memory reads one line of the server's /proc status, in bytes.
func (c *client) memory(field string) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

func (c *client) close() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	<-c.ended
	return c.cmd.Wait()
}

func median(ds []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(ds))
	return s[len(s)/2]
}

func middle(fs []float64) float64 {
	s := slices.Sorted(slices.Values(fs))
	return s[len(s)/2]
}

func mib(b int64) float64 { return float64(b) / (1 << 20) }

func twoKB() string { return strings.Repeat("0123456789abcde ", 128) }
