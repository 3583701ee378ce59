package shellast

import (
	"slices"
	"strings"

	"github.com/zeph-tools/zeph-mcp-tools/call"
)

// wrapper is one row: a program that runs the command in its operands.
type wrapper struct {
	spec string // its options with a value, see newGrammar
	skip int    // operands before the command
	none string // options with which nothing is run
	sub  string // the subcommands that run something: "uv run"
	pipe string // options whose value names a program behind "|" or "!"
	lock string // role letter of the skipped operand, "" = no path
}

// wrapperRows is the table of wrappers, one row each.
func wrapperRows() map[string]wrapper {
	return map[string]wrapper{
		"command":          {none: "-v -V"},
		"exec":             {spec: "-a"},
		"builtin":          {},
		"nohup":            {},
		"setsid":           {},
		"nice":             {spec: "-n --adjustment"},
		"ionice":           {spec: "-c --class -n --classdata -p --pid -P --pgid -u --uid", none: "-p --pid -P --pgid -u --uid"},
		"time":             {spec: "-f --format -o=w --output=w"},
		"timeout":          {spec: "-k --kill-after -s --signal", skip: 1},
		"stdbuf":           {spec: "-i --input -o --output -e --error"},
		"unshare":          {spec: "-S --setuid -G --setgid -R=r --root=r -w --wd --map-user --map-group --map-users --map-groups --propagation --setgroups --monotonic --boottime -l --load-interp"},
		"chroot":           {spec: "--userspec --groups", skip: 1, lock: "r"},
		"setpriv":          {spec: "--ambient-caps --inh-caps --bounding-set --ruid --euid --rgid --egid --reuid --regid --groups --securebits --pdeathsig --ptracer --selinux-label --apparmor-profile --landlock-access --landlock-rule --seccomp-filter"},
		"chrt":             {spec: "-T --sched-runtime -P --sched-period -D --sched-deadline -p --pid", skip: 1, none: "-p --pid -m --max"},
		"taskset":          {spec: "-p --pid", skip: 1, none: "-p --pid"},
		"strace":           {pipe: "-o --output", spec: "-a -b -e -E -I -o=w --output=w -O -p -P -s -S -u -U -X --attach --env --trace --signal --string-limit --user"},
		"ltrace":           {pipe: "-o --output", spec: "-a -A -D -e -F -l -n -o=w --output=w -p -s -u -w -x -X"},
		"unbuffer":         {},
		"xvfb-run":         {spec: "-n --server-num -e=w --error-file=w -f=w --auth-file=w -p --xauth-protocol -s --server-args -w --wait"},
		"systemd-run":      {spec: "-p --property -u --unit -M --machine -H --host -E --setenv --working-directory --slice --uid --gid --nice --description --service-type --on-active --on-boot --on-startup --on-unit-active --on-unit-inactive --on-calendar --timer-property --path-property --socket-property"},
		"doas":             {spec: "-C -u"},
		"sudo":             {spec: "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -r --role -t --type -T --command-timeout -U --other-user"},
		"pkexec":           {spec: "--user"},
		"run0":             {spec: "-u --user -g --group --nice -D --chdir --setenv --unit --property --slice --background"},
		"nsenter":          {spec: "-t --target -S --setuid -G --setgid"},
		"fakeroot":         {spec: "-l --lib --faked -s=w -i=r -b"},
		"chronic":          {},
		"rlwrap":           {spec: "-a -b -C -f -H -l -m -O -p -P -q -s -S -t -w -z"},
		"dbus-run-session": {spec: "--config-file --dbus-daemon"},
		"valgrind":         {},
		"proxychains":      {spec: "-f"},
		"proxychains4":     {spec: "-f"},
		"torsocks":         {spec: "-u -p -a -P"},
		"torify":           {},
		"firejail":         {},
		"linux32":          {},
		"ld.so":            {spec: "--library-path --preload --audit --argv0 --inhibit-rpath --glibc-hwcaps-prepend --glibc-hwcaps-mask", none: "--list --verify --help --version --list-tunables --list-diagnostics"},
		"qemu-user":        {spec: "single -L -E -U -0 -cpu -g -s -R -B -r -D -d -p -seed"},
		"i386":             {},
		"x86_64":           {},
		"uname26":          {},
		"linux64":          {},
		"choom":            {spec: "-n --adjust -p --pid", none: "-p --pid"},
		"cgexec":           {spec: "-g"},
		"catchsegv":        {},
		"dbus-launch":      {},
		"ssh-agent":        {spec: "-a -E -O -P -t", none: "-k"},
		"tini":             {spec: "-p -e"},
		"dumb-init":        {spec: "-r --rewrite"},
		"gosu":             {skip: 1},
		"su-exec":          {skip: 1},
		"cross-env":        {},
		"prlimit":          {spec: "-p --pid -o --output"},
		"numactl":          {spec: "-C -m -N -p -i --physcpubind --membind --cpunodebind --interleave --preferred"},
		"cpulimit":         {spec: "-l --limit -p --pid -e --exe -P --path"},
		"sshpass":          {spec: "-p -f=r -d -P"},
		"caffeinate":       {spec: "-t -w"},
		"uvx":              {spec: "--from --with -p --python --index-url --directory"},
		"fakechroot":       {spec: "-s -l --lib -d --elfloader -e --environment -c --config-dir -b --bindir"},
		"proot":            {spec: "-r=r --rootfs=r -b --bind -m --mount -q --qemu -w --pwd --cwd -k -S -R"},
		"softlimit":        {spec: "-a -c -d -f -l -m -o -p -r -s -t"},
		"daemonize":        {spec: "-c -e=w -o=w -p=w -l=w -u -E"},
		"dtach":            {spec: "-e -r", skip: 1},
		"abduco":           {spec: "-e", skip: 1},
		"ifne":             {},
		"xcrun":            {spec: "--sdk --toolchain"},
	}
}

// runnerRows are the wrappers that are one by a subcommand: "uv run".
func runnerRows() map[string]wrapper {
	return map[string]wrapper{
		"perf":       {sub: "stat record trace mem c2c lock sched kvm", spec: "-e --event -o=w --output=w -r --repeat -p --pid -t --tid -a -C --cpu -I -x"},
		"uv":         {sub: "run", spec: "--with --python -p --directory --project --extra --group --env-file"},
		"poetry":     {sub: "run"},
		"pipenv":     {sub: "run"},
		"pdm":        {sub: "run"},
		"hatch":      {sub: "run"},
		"rye":        {sub: "run"},
		"bundle":     {sub: "exec"},
		"conda":      {sub: "run", spec: "-n --name -p --prefix --cwd"},
		"direnv":     {sub: "exec", skip: 1},
		"mise":       {sub: "exec x", spec: "-j --jobs -C --cd"},
		"asdf":       {sub: "exec"},
		"yarn":       {sub: "exec dlx"},
		"rbenv":      {sub: "exec"},
		"pyenv":      {sub: "exec"},
		"nodenv":     {sub: "exec"},
		"goenv":      {sub: "exec"},
		"jenv":       {sub: "exec"},
		"opam":       {sub: "exec", spec: "--switch"},
		"volta":      {sub: "run", spec: "--node --npm --yarn --pnpm"},
		"fnm":        {sub: "exec", spec: "--using"},
		"pixi":       {sub: "run", spec: "-e --environment --manifest-path"},
		"devbox":     {sub: "run", spec: "-c --config -e --env"},
		"mamba":      {sub: "run", spec: "-n --name -p --prefix --cwd"},
		"micromamba": {sub: "run", spec: "-n --name -p --prefix --cwd"},
		"lerna":      {sub: "exec", spec: "--scope --ignore --concurrency"},
		"foreman":    {sub: "run", spec: "-e -f -d"},
		"honcho":     {sub: "run", spec: "-e -f -d"},
		"op":         {sub: "run", spec: "--env-file"},
		"doppler":    {sub: "run", spec: "-p --project -c --config"},
		"podman":     {sub: "unshare"},
		"buildah":    {sub: "unshare"},
		"pipx":       {sub: "run", spec: "--spec --python --pip-args --index-url"},
		"rr":         {sub: "record", spec: "-n -c -o -s --env -v"},
	}
}

// unwrap judges a wrapper and what it runs.
func (row wrapper) unwrap(name string) handler {
	g := newGrammar(row.spec + " posix")
	none := strings.Fields(row.none)
	assigns := name == "cross-env" || name == "doas" || name == "sudo" || name == "systemd-run" || name == "run0"
	return func(w *walker, st *state, c *cmd) output {
		args, ok := row.subcommand(c.args)
		if !ok {
			w.guessAll(st, c, c.args)
			return output{}
		}
		p := g.split(args)
		w.optionPaths(st, c, g, p)
		row.pipes(w, st, p, name)
		if len(none) > 0 && p.has(none...) {
			return output{}
		}
		rest := row.skipOperands(w, st, c, p.rest)
		switch name {
		case "command", "builtin", "exec":
		default:
			st = st.clone() // what it runs is no part of the shell
		}
		if assigns {
			rest = w.assignWords(st, rest)
		}
		if name == "exec" && len(rest) == 0 {
			st.keepIn = true
		}
		return w.run(st, rest, name)
	}
}

// subcommand takes the one off that makes it a wrapper, if it needs one.
func (row wrapper) subcommand(args []word) ([]word, bool) {
	if row.sub == "" {
		return args, true
	}
	if len(args) == 0 || !args[0].known() || wordIndex(row.sub, args[0].text()) < 0 {
		return nil, false
	}
	return args[1:], true
}

// pipes judges the programs that output is sent to.
func (row wrapper) pipes(w *walker, st *state, p parsed, name string) {
	for _, v := range p.values(strings.Fields(row.pipe)...) {
		if t := v.prefix(); t != "" && (t[0] == '|' || t[0] == '!') {
			w.program(st.clone(), v.cut(1), name)
		}
	}
}

// skipOperands takes off the operands before the command.
func (row wrapper) skipOperands(w *walker, st *state, c *cmd, rest []word) []word {
	for i := 0; i < row.skip && len(rest) > 0; i++ {
		if row.lock != "" {
			w.path(st, c, rest[0], roleOf(row.lock[0]))
		}
		rest = rest[1:]
	}
	if row.skip > 0 && len(rest) > 0 && rest[0].is("--") {
		rest = rest[1:]
	}
	return rest
}

// assignWords takes leading NAME=value words off a command.
func (w *walker) assignWords(st *state, words []word) []word {
	for len(words) > 0 {
		name, _, ok := strings.Cut(words[0].prefix(), "=")
		if !ok && assignsUnknown(words[0]) {
			words = words[1:]
			continue
		}
		if !ok || name == "" || strings.ContainsAny(name, "/ ") {
			return words
		}
		v := words[0].cut(len(name) + 1)
		w.env(name, "env", words[0].pos)
		st.setEnviron(name, v)
		w.codeVar(st, name, v)
		w.pathVar(st, name, v)
		words = words[1:]
	}
	return words
}

// assignsUnknown reports whether a word sets a variable nobody knows: env takes
// every word with "=" for an assignment.
func assignsUnknown(x word) bool {
	return !x.known() && !x.many() && slices.ContainsFunc(x.segs, func(s seg) bool { return s.known && strings.Contains(s.text, "=") })
}

// envCommand judges env, whose -S has a grammar of its own.
func envCommand() handler {
	g := newGrammar("-u --unset -C --chdir -S --split-string -a --argv0 posix")
	return func(w *walker, st *state, c *cmd) output {
		p := g.split(c.args)
		sub := st.clone()
		for _, d := range p.values("-C", "--chdir") {
			w.cdTo(sub, c, d, nil)
		}
		for i, o := range p.opts {
			if o.name != "-S" && o.name != "--split-string" || !o.has {
				continue
			}
			words, ok := splitString(o.value)
			if !ok {
				w.code(o.value.cons, o.value.src, "the text given to env -S is not known before it runs", o.value.pos)
				return output{}
			}
			if i > 64 {
				return output{}
			}
			return w.run(sub, append(append([]word{plain("env", c.pos)}, words...), p.rest...), "env -S")
		}
		rest := p.rest
		for len(rest) > 0 && rest[0].is("-") {
			rest = rest[1:]
		}
		return w.run(sub, w.assignWords(sub, rest), "env")
	}
}

// splitString splits the text of env -S by its own rules: quotes, escapes, and
// variables that stay unknown.
func splitString(x word) ([]word, bool) {
	if !x.known() {
		return nil, false
	}
	var out []word
	b := &envSplitter{s: x.text(), pos: x.pos}
	for {
		f, ok := b.next()
		if !ok {
			return out, len(out) < maxBraces
		}
		out = append(out, f)
	}
}

type envSplitter struct {
	s     string
	pos   call.Pos
	cur   strings.Builder
	segs  []seg
	quote byte
}

// next takes the next word off the text.
func (b *envSplitter) next() (word, bool) {
	b.s = strings.TrimLeft(b.s, " \t\n\v\f\r")
	if b.s == "" || b.s[0] == '#' {
		return word{}, false
	}
	b.segs, b.quote = nil, 0
	i := 0
	for i < len(b.s) {
		n, end := b.char(i)
		i += n
		if end {
			break
		}
	}
	b.flush()
	i = min(i, len(b.s))
	out := word{pos: b.pos, src: b.s[:i], segs: b.segs}
	if len(out.segs) == 0 {
		out.segs = []seg{{known: true, quoted: true}}
	}
	b.s = b.s[i:]
	return out, true
}

func (b *envSplitter) flush() {
	if b.cur.Len() > 0 {
		b.segs = append(b.segs, seg{text: b.cur.String(), known: true, quoted: true})
		b.cur.Reset()
	}
}

// char reads what stands at i: how many bytes it takes, and whether it ends
// the word.
func (b *envSplitter) char(i int) (n int, end bool) {
	switch ch := b.s[i]; {
	case b.quote == 0 && strings.IndexByte(" \t\n\v\f\r", ch) >= 0:
		return 0, true
	case ch == b.quote:
		b.quote = 0
	case b.quote == 0 && (ch == '\'' || ch == '"'):
		b.quote = ch
	case ch == '\\' && b.quote != '\'' && i+1 < len(b.s):
		return b.escape(b.s[i+1])
	case ch == '$' && b.quote != '\'':
		b.flush()
		end := max(strings.IndexByte(b.s[i:], '}'), 0)
		b.segs = append(b.segs, seg{text: b.s[i : i+end+1], quoted: true})
		return end + 1, false
	default:
		b.cur.WriteByte(ch)
	}
	return 1, false
}

// escape reads the letter after a backslash: outside quotes \_ ends the word,
// and \c ends the text.
func (b *envSplitter) escape(ch byte) (n int, end bool) {
	switch {
	case ch == '_' && b.quote == 0:
		return 2, true
	case ch == 'c':
		return len(b.s), true
	}
	b.cur.WriteByte(envEscape(ch))
	return 2, false
}

func envEscape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'f':
		return '\f'
	case 'v':
		return '\v'
	case '_':
		return ' '
	}
	return c
}

// flock runs its command after a lock file, or a string after -c.
func flock() handler {
	g := newGrammar("-w --wait --timeout -E --conflict-exit-code posix")
	return func(w *walker, st *state, c *cmd) output {
		p := g.split(c.args)
		if len(p.rest) == 0 {
			return output{}
		}
		if strings.Trim(p.rest[0].text(), "0123456789") != "" {
			w.path(st, c, p.rest[0], roleWrite)
		}
		rest := p.rest[1:]
		if len(rest) > 1 && rest[0].is("-c", "--command") {
			w.program(st.clone(), rest[1], "flock -c")
			return output{}
		}
		return w.run(st, rest, "flock")
	}
}

// multicall runs the applet its first operand names.
func multicall(w *walker, st *state, c *cmd) output {
	if len(c.args) == 0 || strings.HasPrefix(c.args[0].prefix(), "--") {
		return output{}
	}
	return w.run(st, c.args, c.name)
}
