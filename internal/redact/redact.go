// Package redact takes secrets out of text that is shown or kept.
//
// It knows secrets by the shape of the value (keys of well-known services,
// private key blocks, bearer tokens, passwords in URLs), by the name a value is
// given under, and by the flag a program takes a password with. It is a net
// for accidents, not a boundary: a secret that looks like a word passes.
package redact

import (
	"regexp"
	"strings"
	"sync"
)

// Redactor replaces secrets by «[redacted:kind]». It is safe for concurrent
// use. Its patterns are compiled on first need.
type Redactor struct {
	values []rule // by the shape of the value
	named  []rule // by the name or flag the value is given under
}

// New returns a redactor with the built-in patterns.
func New() *Redactor {
	return &Redactor{values: valueRules(), named: namedRules()}
}

// rule is one pattern. The cheap triggers decide whether the pattern is looked
// at, so text without secrets costs a few substring searches.
type rule struct {
	kind     string
	triggers []string // lower-case; one of them must occur in the lower-cased text
	pattern  func() *regexp.Regexp
}

func newRule(kind, pattern string, triggers ...string) rule {
	return rule{kind: kind, triggers: triggers, pattern: sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(pattern)
	})}
}

// Every pattern has the secret as its last group; what stands before it stays.
func valueRules() []rule {
	return []rule{
		newRule("private-key", `()(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z))`, "private key"),
		newRule("aws-key", `()\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b`, "akia", "asia", "abia", "acca"),
		newRule("github-token", `()\b((?:gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}))`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
		newRule("gitlab-token", `()\b(glpat-[A-Za-z0-9_.-]{20,})`, "glpat-"),
		newRule("api-key", `()\b((?:sk|pk|rk)-[A-Za-z0-9_-]{20,}|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,})`, "sk-", "pk-", "rk-", "sk_", "rk_"),
		newRule("slack-token", `()\b(xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,})`, "xox", "xapp-"),
		newRule("google-key", `()\b(AIza[A-Za-z0-9_-]{35})`, "aiza"),
		newRule("registry-token", `()\b(npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,})`, "npm_", "pypi-", "hf_"),
		newRule("age-key", `()\b(AGE-SECRET-KEY-1[A-Z0-9]{50,})`, "age-secret-key-"),
		newRule("jwt", `()\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`, "eyj"),
		newRule("authorization", `(?i)(\bauthorization["']?\s*[:=]\s*["']?(?:(?:bearer|basic|token|digest|negotiate)\s+)?)([^\s"',;]{4,})`, "authorization"),
		newRule("bearer", `(?i)(\bbearer\s+)([A-Za-z0-9._~+/=-]{16,})`, "bearer"),
		newRule("url-password", `([A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:"'<>]*:)([^\s/?#"'<>]+)@`, "://"),
	}
}

func namedRules() []rule {
	const name = `[A-Za-z0-9_.-]*(?i:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)[A-Za-z0-9_.-]*`
	const value = `("[^"\n]*"|'[^'\n]*'|[^\s"'&;|]+)`
	return []rule{
		newRule("value", `((?:^|[^A-Za-z0-9_.-])`+name+`["']?\s?[=:]\s*)`+value, nameWords()...),
		newRule("value", `((?:^|\s)--?`+name+`\s+)`+value, nameWords()...),
		newRule("login", `(\bcurl\b[^|;&\n]*?\s(?:-[a-zA-Z]*u|--user|--proxy-user|-U)[\s=]*["']?[^\s:"']*:)([^\s"']+)`, "curl"),
		newRule("password", `(\b(?:mysql|mysqldump|mysqladmin|mariadb|mariadb-dump)\b[^|;&\n]*?\s-p)("[^"]*"|'[^']*'|[^\s"']+)`, "mysql", "mariadb"),
		newRule("password", `(\bsshpass\b[^|;&\n]*?\s-p\s*)("[^"]*"|'[^']*'|[^\s"']+)`, "sshpass"),
	}
}

func nameWords() []string {
	return []string{
		"password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key",
		"access_key", "access-key", "accesskey", "private_key", "private-key", "privatekey", "credential",
	}
}

// Text replaces secrets known by the shape of their value. It changes nothing
// else, so it is fit for text a model reads and works with.
func (r *Redactor) Text(s string) (out string, n int) {
	return apply(r.values, s)
}

// Command is [Redactor.Text] for command lines and other text that is kept: it
// also replaces what is given under a telling name (TOKEN=…, --password …) or
// with a password flag (mysql -p…, curl -u user:…).
func (r *Redactor) Command(s string) (out string, n int) {
	out, n = apply(r.values, s)
	out, m := apply(r.named, out)
	return out, n + m
}

// suspicious reports whether any pattern could match s.
func (r *Redactor) suspicious(s string) bool {
	lower := strings.ToLower(s)
	for _, rules := range [2][]rule{r.values, r.named} {
		for _, ru := range rules {
			if ru.triggered(lower) {
				return true
			}
		}
	}
	return strings.Contains(lower, "cookie") // only as the name of a key
}

func (ru rule) triggered(lower string) bool {
	for _, t := range ru.triggers {
		if strings.Contains(lower, t) {
			return true
		}
	}
	return false
}

func apply(rules []rule, s string) (string, int) {
	lower, n := strings.ToLower(s), 0
	for _, ru := range rules {
		if !ru.triggered(lower) {
			continue
		}
		if out, m := ru.replace(s); m > 0 {
			s, n = out, n+m
			lower = strings.ToLower(s)
		}
	}
	return s, n
}

// replace puts the mark in place of the last group of every match.
func (ru rule) replace(s string) (string, int) {
	var b strings.Builder
	n, last := 0, 0
	for _, m := range ru.pattern().FindAllStringSubmatchIndex(s, -1) {
		from, to := m[4], m[5]
		if keep(s[from:to]) {
			continue
		}
		b.WriteString(s[last:from])
		b.WriteString(Mark(ru.kind))
		last = to
		n++
	}
	if n == 0 {
		return s, 0
	}
	b.WriteString(s[last:])
	return b.String(), n
}

// keep says that a matched value is no secret: it is already replaced, or only
// refers to one ($TOKEN).
func keep(value string) bool {
	bare := strings.Trim(value, `"'`)
	return bare == "" || strings.Contains(value, markOpen) || bare[0] == '$' && !strings.ContainsAny(bare, " \t")
}

const markOpen = "«[redacted:"

// Mark returns what stands in place of a secret of that kind.
func Mark(kind string) string { return markOpen + kind + "]»" }
