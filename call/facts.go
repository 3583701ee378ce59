package call

import (
	"slices"
	"strings"
)

// Facts is what a call means, computed once by the tool from the canonical
// arguments. Gates, the question to the person, the audit record and the risk
// chain use these facts and nothing else. What cannot be resolved before
// running is listed under Unknown and is never treated as harmless.
type Facts struct {
	Summary    string      `json:"summary"`              // one line a person understands
	Text       string      `json:"-"`                    // canonical text that permission globs match (the command, the path, the URL)
	Cwd        Path        `json:"-"`                    // where relative paths start; zero when the tool has none
	ExecEnv    string      `json:"-"`                    // name of the prepared environment a command runs in; "" = none
	Commands   []Command   `json:"commands,omitempty"`   // every command position
	Reads      []Path      `json:"reads,omitempty"`      // named reads
	Writes     []Path      `json:"writes,omitempty"`     // named writes, moves and deletes
	URLs       []URL       `json:"urls,omitempty"`       // every URL the call reaches for
	Unknown    []Unknown   `json:"unknown,omitempty"`    // what could not be decided, and why
	Constructs []Construct `json:"constructs,omitempty"` // shell constructs a rule may ask about
	Env        []EnvVar    `json:"env,omitempty"`        // environment set for later programs
	Loosening  []Loosening `json:"loosening,omitempty"`  // what the call asks for beyond the base policy
	Acts       []Act       `json:"acts,omitempty"`       // what commands do beyond reading and writing named paths
	Parse      *ParseError `json:"parse,omitempty"`      // the command could not be read; nothing else is reliable
}

// Pos is a place in the text the words came from. Lines and columns count from
// 1; zero means no position.
type Pos struct {
	Line   uint `json:"line,omitempty"`
	Column uint `json:"column,omitempty"`
}

// Command is one command position with its words resolved as far as possible.
type Command struct {
	Name string   `json:"name"`           // basename the deny table matches; "" when unknown
	Argv []string `json:"argv"`           // resolved words; an unresolved word as written
	Path string   `json:"path,omitempty"` // real path when the program word is a path
	Via  string   `json:"via,omitempty"`  // what runs it: "", "env", "sh -c", "find -exec", "xargs", …
	Dir  string   `json:"dir,omitempty"`  // where it runs when that is not the call's folder; [DirUnknown] when nobody can say
	Own  bool     `json:"own,omitempty"`  // a program that lies inside the workspace: its name says nothing
	Pos
}

// Forms are the ways to write the command by the name of its program: as it
// is, and without the options that stand before its subcommand, each of which
// may have a value. They are for rules that refuse or ask: "git push" is meant
// by "/usr/bin/git -C x push" as well. Nil when the program is not known.
func (c Command) Forms() [][]string {
	if c.Name == "" {
		return nil
	}
	args := c.Argv[min(1, len(c.Argv)):]
	out := [][]string{append([]string{c.Name}, args...)}
	for i := range args {
		value := i > 0 && i < len(args)-1 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=")
		if !strings.HasPrefix(args[i], "-") && !value {
			break
		}
		out = append(out, append([]string{c.Name}, args[i+1:]...))
	}
	return out
}

// DirUnknown stands for a folder that is not known before running.
const DirUnknown = "?"

// ActKind sorts what a command does beyond reading and writing named paths.
type ActKind string

// The kinds of acts.
const (
	ActRemove         ActKind = "remove"          // rm; Sub is "recursive" when it is
	ActDestroy        ActKind = "destroy"         // rm of what is never given; Sub names the rule
	ActTruncate       ActKind = "truncate"        // truncate
	ActPush           ActKind = "push"            // git push that rewrites or deletes; Sub is the option or refspec
	ActGit            ActKind = "git"             // git that throws work away; Sub is the subcommand and option
	ActSQL            ActKind = "sql"             // Sub is drop table, drop database or truncate table
	ActMassChange     ActKind = "mass_change"     // find -delete, chmod -R and the like
	ActForkBomb       ActKind = "fork_bomb"       // a function that multiplies itself
	ActNetworkDevice  ActKind = "network_device"  // /dev/tcp and /dev/udp
	ActSignal         ActKind = "signal"          // kill -1, pkill, killall
	ActUnknownOperand ActKind = "unknown_operand" // an operand nobody knows, of a command that destroys
)

// Act is one thing a command does that a rule may ask about.
type Act struct {
	Kind ActKind `json:"kind"`
	Name string  `json:"name"`          // the command
	Sub  string  `json:"sub,omitempty"` // see the kinds
	Text string  `json:"text"`          // as written, for the reason
	Pos
}

// Place is where a path lies. The zero value is unknown and is never treated
// as harmless.
type Place uint8

// The places.
const (
	PlaceUnknown   Place = iota // could not be decided
	PlaceSecret                 // always unreadable, or matched by deny_read
	PlaceOutside                // neither readable by default nor secret
	PlaceSystem                 // readable by default, not writable
	PlaceDevice                 // /dev/null and the like: readable and writable
	PlaceScratch                // private /tmp, /dev/shm, sandbox caches: writable
	PlaceWorkspace              // inside a workspace root: writable
)

// String returns the lower-case name used in explain and audit.
func (p Place) String() string {
	switch p {
	case PlaceSecret:
		return "secret"
	case PlaceOutside:
		return "outside"
	case PlaceSystem:
		return "system"
	case PlaceDevice:
		return "device"
	case PlaceScratch:
		return "scratch"
	case PlaceWorkspace:
		return "workspace"
	case PlaceUnknown:
		return "unknown"
	}
	return "unknown"
}

// Writable reports whether the sandbox lets a command write there.
func (p Place) Writable() bool {
	return p == PlaceDevice || p == PlaceScratch || p == PlaceWorkspace
}

// Readable reports whether a read there needs nobody's leave.
func (p Place) Readable() bool { return p == PlaceSystem || p.Writable() }

// Path is one named path, resolved through symbolic links.
type Path struct {
	Text       string `json:"text,omitempty"` // as written
	Path       string `json:"path"`           // absolute and resolved
	Place      Place  `json:"-"`
	Inside     bool   `json:"inside"`                // inside a workspace root
	Protected  string `json:"protected,omitempty"`   // the protected name it is, or lies below
	Secret     string `json:"secret,omitempty"`      // the rule that makes it secret
	Root       bool   `json:"root,omitempty"`        // a workspace root itself
	HoldsDeny  string `json:"holds_deny,omitempty"`  // a folder that holds a secret or outside place (matters for recursive reads and deletes)
	Recursive  bool   `json:"recursive,omitempty"`   // everything below is meant too
	Test       bool   `json:"test,omitempty"`        // only its existence or its own attributes matter
	ImplicitBy string `json:"implicit_by,omitempty"` // not written by the caller: the implied "." of grep -r and the like
	By         string `json:"by,omitempty"`          // command or tool that names it
	Op         string `json:"op,omitempty"`          // read, write, redirect, link, delete, move, mode
	Pos
}

// URL is one destination, already parsed and normalised.
type URL struct {
	URL    string `json:"url"` // redacted: no userinfo
	Scheme string `json:"scheme"`
	Host   string `json:"host"` // lower-case ASCII (punycode), no trailing dot, no brackets
	Port   int    `json:"port"` // explicit or the scheme's default
	Path   string `json:"path,omitempty"`
	Fault  string `json:"fault,omitempty"` // stable code when the text is not acceptable as a URL: bad_url, userinfo, scheme
	Why    string `json:"why,omitempty"`   // what is wrong, for the reason
}

// Unknown is one word or text that cannot be resolved before running.
type Unknown struct {
	Text string `json:"text"`
	Why  string `json:"why"`
	Code bool   `json:"code,omitempty"` // its value decides what runs
	By   string `json:"by,omitempty"`   // the command whose operand it is
	Op   string `json:"op,omitempty"`   // what is done with the path it is, as in Path.Op, or test; "" when it may be none
	Pos
}

// Construct is a shell construct that rules may ask about.
type Construct struct {
	Kind   string `json:"kind"` // "$( )", "``", "<( )", ">( )", "<<<", "eval"
	Text   string `json:"text"`
	AsCode bool   `json:"as_code,omitempty"` // its result is run as code
	Pos
}

// EnvVar is one environment variable set for a later program.
type EnvVar struct {
	Name string `json:"name"`
	How  string `json:"how"` // prefix, assignment, export, env, call
	Pos
}

// Loosening is one thing a call asks for beyond the base policy.
type Loosening struct {
	Field string `json:"field"` // argument name: allow_domains, allow_write, network
	Value string `json:"value"`
	Never string `json:"never,omitempty"` // why it can never be granted; "" = may be asked for
}

// ParseError says why a command could not be read.
type ParseError struct {
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
	Pos
}

// Clone returns a copy that shares nothing with f.
func (f Facts) Clone() Facts {
	f.Commands = slices.Clone(f.Commands)
	cloneArgv(f.Commands)
	f.Reads = slices.Clone(f.Reads)
	f.Writes = slices.Clone(f.Writes)
	f.URLs = slices.Clone(f.URLs)
	f.Unknown = slices.Clone(f.Unknown)
	f.Constructs = slices.Clone(f.Constructs)
	f.Env = slices.Clone(f.Env)
	f.Loosening = slices.Clone(f.Loosening)
	f.Acts = slices.Clone(f.Acts)
	if f.Parse != nil {
		p := *f.Parse
		f.Parse = &p
	}
	return f
}

// cloneArgv gives every command words of its own, all out of one array.
func cloneArgv(cs []Command) {
	n := 0
	for i := range cs {
		n += len(cs[i].Argv)
	}
	all := make([]string, 0, n)
	for i := range cs {
		if cs[i].Argv != nil {
			from := len(all)
			all = append(all, cs[i].Argv...)
			cs[i].Argv = all[from:len(all):len(all)]
		}
	}
}

// Equal reports whether both say the same, in every field.
func (f Facts) Equal(o Facts) bool {
	return f.Summary == o.Summary && f.Text == o.Text && f.Cwd == o.Cwd && f.ExecEnv == o.ExecEnv &&
		f.Parse.equal(o.Parse) && f.equalLists(o)
}

func (f Facts) equalLists(o Facts) bool {
	return slices.EqualFunc(f.Commands, o.Commands, Command.equal) &&
		slices.Equal(f.Reads, o.Reads) && slices.Equal(f.Writes, o.Writes) &&
		slices.Equal(f.URLs, o.URLs) && slices.Equal(f.Unknown, o.Unknown) &&
		slices.Equal(f.Constructs, o.Constructs) && slices.Equal(f.Env, o.Env) &&
		slices.Equal(f.Loosening, o.Loosening) && slices.Equal(f.Acts, o.Acts)
}

func (e *ParseError) equal(o *ParseError) bool {
	return e == o || e != nil && o != nil && *e == *o
}

func (c Command) equal(o Command) bool {
	return c.Name == o.Name && c.Path == o.Path && c.Via == o.Via && c.Dir == o.Dir && c.Own == o.Own && c.Pos == o.Pos &&
		(c.Argv == nil) == (o.Argv == nil) && slices.Equal(c.Argv, o.Argv)
}
