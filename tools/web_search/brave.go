package websearch

import (
	"context"
	"encoding/json"
	"html"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/zeph-tools/zeph-mcp-tools/call"
	"github.com/zeph-tools/zeph-mcp-tools/egress"
	"github.com/zeph-tools/zeph-mcp-tools/gates"
	"github.com/zeph-tools/zeph-mcp-tools/internal/secret"
)

const (
	maxSnippet = 300 // characters
	maxURL     = 2000
	shortWait  = 2 * time.Second // a rate window that is worth waiting for
)

// brave asks the Brave search API.
type brave struct {
	get func(context.Context, egress.Request, url.Values) (*egress.Response, error)
	Key secret.Secret // exported, or fmt would print it past its String method
}

// search asks once, and once more when a short rate window is the only
// obstacle. size is how much was read.
func (b *brave) search(ctx context.Context, auth gates.Authorized, a arguments, limit int) (got answer, size int, err error) {
	query := url.Values{
		"q": {a.Query}, "count": {strconv.Itoa(limit)},
		"text_decorations": {"false"}, "result_filter": {"web,query"},
	}
	if a.Freshness != "" {
		query.Set("freshness", a.Freshness)
	}
	if a.Country != "" {
		query.Set("country", a.Country)
	}
	req := egress.Request{
		CallID: auth.CallID(), Tool: auth.Tool(), Timeout: auth.Limits().Timeout,
		Headers: []egress.Header{{Name: "Accept", Value: "application/json"}, {Name: "X-Subscription-Token", Value: b.Key.Reveal()}},
	}
	resp, err := b.get(ctx, req, query)
	if err == nil && resp.Status == http.StatusTooManyRequests {
		if wait, ok := window(resp.Header); ok && wait <= shortWait {
			if err := sleep(ctx, wait+rand.N(250*time.Millisecond)); err != nil { //nolint:gosec // jitter, not a secret
				return answer{}, 0, err
			}
			resp, err = b.get(ctx, req, query)
		}
	}
	if err != nil {
		return answer{}, 0, err
	}
	got, err = read(resp, limit)
	return got, len(resp.Body), err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return &call.Error{
			Category: call.CategoryCancelled, Code: "cancelled", Phase: call.PhaseExecution,
			Message: "the call was cancelled while it waited for the search provider",
		}
	}
}

// window reads the rate headers, which are pairs for the second and the month:
// how long until the next request is allowed, and whether it is the short
// window that is used up.
func window(h http.Header) (wait time.Duration, short bool) {
	left, reset := pair(h, "X-Ratelimit-Remaining"), pair(h, "X-Ratelimit-Reset")
	if len(left) == 0 || len(reset) == 0 {
		return egress.RetryAfter(h), false
	}
	if len(left) > 1 && left[1] == 0 {
		return seconds(reset[min(1, len(reset)-1)]), false
	}
	return seconds(reset[0]), true
}

func pair(h http.Header, name string) []int {
	var out []int
	for f := range strings.SplitSeq(h.Get(name), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}

func seconds(n int) time.Duration { return time.Second * time.Duration(min(max(n, 0), 32*24*3600)) }

// braveAnswer is what of an answer is used. Every block may be absent.
type braveAnswer struct {
	Query struct {
		Altered string `json:"altered"`
	} `json:"query"`
	Web struct {
		Results []struct {
			Title       string `json:"title"`
			URL         string `json:"url"`
			Description string `json:"description"`
			Age         string `json:"age"`
		} `json:"results"`
	} `json:"web"`
}

// read turns an answer into results or an error. No error holds anything of
// the body.
func read(resp *egress.Response, limit int) (answer, error) {
	if resp.Status < 200 || resp.Status > 299 {
		return answer{}, refusal(resp)
	}
	if resp.Truncated {
		return answer{}, call.Failure("too_large", "the search provider's answer is too large or too slow", "search for something else")
	}
	var raw braveAnswer
	if err := json.Unmarshal(resp.Body, &raw); err != nil {
		return answer{}, &call.Error{
			Category: call.CategoryServerError, Code: "bad_answer", Phase: call.PhaseResultInterpretation, Retryable: true,
			Message: "the search provider's answer cannot be read", Suggestion: "try again later",
		}
	}
	out := answer{altered: plain(raw.Query.Altered, maxQuery)}
	seen := map[string]bool{}
	for _, r := range raw.Web.Results {
		address, ok := link(r.URL)
		if !ok || seen[address] || len(out.hits) == limit {
			continue
		}
		seen[address] = true
		out.hits = append(out.hits, hit{
			Title: plain(r.Title, maxSnippet), URL: address, Snippet: plain(r.Description, maxSnippet), Age: plain(r.Age, 40),
		})
	}
	return out, nil
}

// link accepts web addresses and drops their fragment.
func link(text string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return "", false
	}
	u.Fragment = ""
	text = u.String()
	return text, len(text) <= maxURL
}

// plain turns escaped text with tags into one line of at most n characters.
func plain(s string, n int) string {
	var b strings.Builder
	for s != "" {
		before, rest, ok := strings.Cut(s, "<")
		b.WriteString(before)
		if !ok {
			break
		}
		end := strings.IndexByte(rest, '>')
		first := strings.TrimPrefix(rest, "/")
		if end < 0 || first == "" || !letter(first[0]) { // a < that starts no tag
			b.WriteByte('<')
			s = rest
			continue
		}
		s = rest[end+1:]
	}
	s = strings.Join(strings.Fields(html.UnescapeString(b.String())), " ")
	if r := []rune(s); len(r) > n {
		s = string(r[:n]) + "…"
	}
	return s
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// refusal maps an error answer. A 422 may mean bad parameters or a bad key, so
// the provider's code counts; a body that is no JSON says nothing.
func refusal(resp *egress.Response) error {
	var body struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(resp.Body, &body) // throttled requests may answer with a page: then the status decides
	switch {
	case body.Error.Code == "SUBSCRIPTION_TOKEN_INVALID", resp.Status == http.StatusUnauthorized, resp.Status == http.StatusForbidden:
		return &call.Error{
			Category: call.CategoryPolicyBlocked, Code: "search_key_rejected", Phase: call.PhaseExecution,
			Message:    "the search provider rejects the configured key or plan",
			Suggestion: "tell the user that the key in [tools.search] is not accepted",
		}
	case resp.Status == http.StatusTooManyRequests:
		wait, short := window(resp.Header)
		e := &call.Error{
			Category: call.CategoryRateLimited, Code: "rate_limited", Phase: call.PhaseExecution,
			Message: "the search provider limits the rate of requests", Suggestion: "wait, then search again",
			Retryable: true, RetryAfter: wait,
		}
		if left := pair(resp.Header, "X-Ratelimit-Remaining"); !short && len(left) > 1 {
			e.Code, e.Retryable = "quota_used_up", false
			e.Message, e.Suggestion = "the search provider's monthly quota is used up", "use fetch with a known URL instead"
		}
		return e
	case resp.Status == http.StatusUnprocessableEntity, resp.Status == http.StatusBadRequest:
		e := call.ArgError("", "the search provider does not accept these parameters", "use a plainer query without freshness and country")
		e.Phase = call.PhaseExecution
		return e
	case resp.Status >= 300 && resp.Status <= 399:
		return call.Failure("redirected", "the search provider answers with a redirect", "tell the user to check tools.search.endpoint")
	}
	return resp.StatusError()
}
