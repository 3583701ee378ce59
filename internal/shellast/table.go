package shellast

import (
	"maps"
	"slices"
	"strings"
)

// row says which words of a command are paths.
type row struct {
	opts     string // options that take a value, with their roles: "-o=w --output=w"
	operands string // roles of the operands in order; the one with "*" repeats
	implied  string // role of "." when there is no operand
}

// The table of path operands has one row a command; several names may share a
// row. It is in three parts only for its length.
func readingRows() map[string]row {
	return map[string]row{
		// commands that read
		"cat tac rev zcat bzcat xzcat zless zmore zgrep-l less more most comm cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum tsort look nm size ldd readelf": {
			operands: "r*",
		},
		"bat batcat":           {opts: "-l --language --theme -r --line-range -H --highlight-line --style --paging --color", operands: "r*"},
		"head tail":            {opts: "-n --lines -c --bytes -s --sleep-interval --pid", operands: "r*"},
		"nl":                   {opts: "-b -d -f -h -i -l -n -s -v -w", operands: "r*"},
		"od":                   {opts: "-A -j -N -S -t", operands: "r*"},
		"xxd":                  {opts: "-c -g -l -o -s", operands: "r w"},
		"hexdump hd":           {opts: "-n -s -e -f=r", operands: "r*"},
		"strings":              {opts: "-n -t -e --bytes", operands: "r*"},
		"column":               {opts: "-s -c -o -N -H -R", operands: "r*"},
		"fold fmt":             {opts: "-w --width -g", operands: "r*"},
		"expand unexpand":      {opts: "-t --tabs", operands: "r*"},
		"paste":                {opts: "-d --delimiters", operands: "r*"},
		"join":                 {opts: "-t -1 -2 -j -a -e -o -v", operands: "r*"},
		"cmp":                  {opts: "-n -i --bytes --ignore-initial", operands: "r*"},
		"iconv":                {opts: "-f -t -o=w --output=w --from-code --to-code", operands: "r*"},
		"pr":                   {opts: "-D -h -l -N -o -S -w -W", operands: "r*"},
		"wc":                   {opts: "--files0-from=r", operands: "r*"},
		"cut":                  {opts: "-d --delimiter -f --fields -c --characters -b --bytes --output-delimiter", operands: "r*"},
		"file":                 {opts: "-m=r --magic-file=r -f=r --files-from=r -F -P -e", operands: "r*"},
		"objdump":              {opts: "-j -M -b -m --start-address --stop-address", operands: "r*"},
		"base64 base32 basenc": {opts: "-w --wrap", operands: "r*"},
		"uniq":                 {opts: "-f -s -w --skip-fields --skip-chars --check-chars", operands: "r w"},
		"shuf":                 {opts: "-i --input-range -n --head-count -o=w --output=w --random-source=r", operands: "r*"},
		"sort":                 {opts: "-k --key -t --field-separator -o=w --output=w -S --buffer-size -T=i --temporary-directory=i --files0-from=r --parallel --compress-program --batch-size --random-source=r", operands: "r*"},
		"diff sdiff colordiff": {opts: "-U -C -I --label -L -W -x --exclude -X=r --exclude-from=r -S -F --from-file=r --to-file=r -D --ifdef -o=w", operands: "r*"},
		"diff3":                {opts: "-L --label", operands: "r*"},
		"stat":                 {opts: "-c --format --printf", operands: "t*"},
		"readlink realpath":    {opts: "--relative-to=t --relative-base=t", operands: "t*"},
		"du":                   {opts: "-d --max-depth -B --block-size -t --threshold --exclude -X=r --exclude-from=r --files0-from=r", operands: "R*", implied: "R"},
		"df":                   {opts: "-t --type -x --exclude-type -B --block-size", operands: "t*"},
		"tree":                 {opts: "-L -P -I -o=w --filelimit --charset -H -T --sort", operands: "R*", implied: "R"},
	}
}

func writingRows() map[string]row {
	return map[string]row{
		"tee sponge":        {opts: "--output-error", operands: "w*"},
		"touch":             {opts: "-d --date -t -r=t --reference=t --time", operands: "w*"},
		"truncate":          {opts: "-s --size -r=t --reference=t", operands: "w*"},
		"fallocate":         {opts: "-l --length -o --offset", operands: "w*"},
		"mkdir":             {opts: "-m --mode", operands: "w*"},
		"mkfifo mknod":      {opts: "-m --mode", operands: "w"},
		"mktemp":            {opts: "-p=i --tmpdir=i --suffix", operands: "w*"},
		"rmdir unlink":      {opts: "", operands: "d*"},
		"shred":             {opts: "-n --iterations -s --size --random-source=r", operands: "w*"},
		"setfacl":           {opts: "-m -x -M=r -X=r", operands: "o*"},
		"strip":             {opts: "-o=w -F --target -K -N -R -I -O", operands: "w*"},
		"objcopy":           {opts: "-F --target -I -O -B -j -R -K -N -L -G -W --add-section=- --only-section", operands: "r w"},
		"chattr":            {opts: "-p -v", operands: "- o*"},
		"csplit":            {opts: "-b -f=w -n --prefix=w --suffix-format --digits", operands: "r -*"},
		"patch":             {opts: "-p --strip -i=r --input=r -o=w --output=w -d=i --directory=i -r=w --reject-file=w -B -D -F -V -Y -z", operands: "w r"},
		"dos2unix unix2dos": {opts: "-i", operands: "w*"},
		"rename prename":    {opts: "-e", operands: "- m*"},
		// archives
		"zip":              {opts: "-b=i -d -i -n -O=w -P -s -t -tt -x -T --exclude --include single", operands: "w R*"},
		"unzip":            {opts: "-d=i -x -P -O", operands: "r -*"},
		"7z 7za 7zz unrar": {opts: "-o=i", operands: "- w R*"},
		"ar":               {opts: "", operands: "- w r*"},
		"cpio":             {opts: "-F=r -I=r -O=w -D=i -E=r -H -R", operands: "i*"},
		// text tools
		"jq yq gojq jaq": {opts: "-f=r --from-file=r --indent -L=r --arg=- --argjson=- --slurpfile=- --rawfile=- --tab -o -p", operands: "p r*"},
		"tr":             {opts: "", operands: "-*"},
		"xmllint":        {opts: "--xpath --schema=r --dtdvalid=r --relaxng=r --output=w -o=w --pattern --encode --path", operands: "r*"},
		"csvcut csvgrep csvsort csvstat csvlook csvjson csvsql mlr": {opts: "-c -m -r -d -q -I --icsv --ojson", operands: "g*"},
		"xmlstarlet xml":           {opts: "-v -m -c -i -s -a -d -u -x -N -o -r", operands: "g*"},
		"pandoc":                   {opts: "-f -t -r -w -o=w --output=w --from --to -V -M -H=r --template=r --css -d=r", operands: "r*"},
		"envsubst":                 {opts: "", operands: "-*"},
		"openssl ssh-add gpg gpg2": {opts: "-out=w -in=r -inkey=r -key=r -keyout=w -CAfile=r -passin -passout -days -subj -newkey -o=w --output=w single", operands: "g*"},
	}
}

func toolRows() map[string]row {
	return map[string]row{
		"cmake":                                {opts: "-S=r -B=i -G -C=r -P=r -D -U -A -T -E -j --parallel --build=r --install=r --prefix=i --target -t --config --preset", operands: "g*"},
		"gcc g++ cc c++ clang clang++ tcc icc": {opts: "-o=w -I=r -L=r -l -D -U -x -isystem=r -include=r -imacros=r -iquote=r -idirafter=r -isysroot=r -MF=w -MT -MQ -Xlinker -Xassembler -Xpreprocessor -Xclang -T=r -u -z -e -A -target -arch -B=r --sysroot=r -dumpbase -aux-info=w -wrapper single", operands: "r*"},
		"ld gold lld":                          {opts: "-o=w -L=r -l -T=r -m -e -z -Map=w -dynamic-linker single", operands: "r*"},
		"as nasm":                              {opts: "-o=w -I=r -f -l=w -D", operands: "r*"},
		"rustc":                                {opts: "-o=w --out-dir=i -L=r -l -C --crate-type --crate-name --edition --emit --extern --target --print --cfg -A -W -D -F", operands: "r*"},
		"cargo":                                {opts: "--manifest-path=r --target-dir=i --target --bin --example --test --bench -p --package --features -j --jobs --profile --color --message-format --path=r --root=i --out-dir=i --config -Z -C=r --exclude --git --branch --tag --rev", operands: "g*"},
		"javac":                                {opts: "-d=i -cp -classpath -sourcepath -s=i -h=i --release -source -target -encoding -processorpath --module-path -p single", operands: "r*"},
		"npm pnpm yarn bun":                    {opts: "--prefix=i -C=i --cwd=i --dir=i -w --workspace --registry --tag --userconfig=r --cache=i --filter", operands: "g*"},
		"tsc esbuild webpack rollup vite":      {opts: "-p=r --project=r --outDir=i --outFile=w -b=r --build=r --outdir=i --outfile=w -c=r --config=r", operands: "g*"},
		"eslint prettier ruff black mypy flake8 pylint isort stylelint": {opts: "-c=r --config=r -o=w --output-file=w --ext -f --format --select --ignore --rulesdir=r --ignore-path=r --line-length -l --cache-dir=i --target-version", operands: "g*"},
		"pytest py.test tox nox":  {opts: "-k -m -n -p -c=r --rootdir=r --junitxml=w --junit-xml=w --cov --cov-report --basetemp=i --tb -W -o -e --maxfail --confcutdir=r", operands: "g*"},
		"pip pip3":                {opts: "-r=r --requirement=r -c=r --constraint=r -e=r --editable=r -t=i --target=i --prefix=i --root=i -d=i --dest=i --cache-dir=i -i --index-url --extra-index-url -f --find-links --log=w -w=i", operands: "g*"},
		"venv virtualenv":         {opts: "--prompt -p --python", operands: "i*"},
		"gofmt goimports gofumpt": {opts: "-r -cpuprofile=w -local -srcdir single", operands: "r*"},
		"golangci-lint":           {opts: "-c=r --config=r -E -D --timeout --out-format", operands: "g*"},
		"clang-format clang-tidy shfmt shellcheck rustfmt": {opts: "-style --style -p=r -i -s -e -f -o --config-file=r --edition --config-path=r", operands: "g*"},
		"docker podman kubectl helm terraform":             {opts: "-f=r --file=r -t --tag -v --volume -w --workdir -e --env --env-file=r -p --publish --name -n --namespace -o --output -l --selector -c --context", operands: "-*"},
		// others
		"protoc":                    {opts: "-I=r --proto_path=r -o=w --go_out=i --python_out=i --cpp_out=i --java_out=i --descriptor_set_out=w", operands: "r*"},
		"sqldiff":                   {operands: "r*"},
		"ffmpeg":                    {opts: "-i=r -f -c -b -r -s -t -ss -vf -af -map -codec -preset -crf -vcodec -acodec single", operands: "w*"},
		"convert":                   {opts: "-resize -quality -crop -geometry single", operands: "g*"},
		"ssh":                       {opts: "-i=r -F=r -p -l -o -L -R -D -J -b -c -E=w -e -I -m -O -Q -S -W -w", operands: "- -*"},
		"aws gcloud az gh glab hub": {operands: "-*"},
		"ps top htop free uptime vmstat iostat lsof ss netstat ip ifconfig ping dmesg journalctl lscpu lsblk lsusb lspci w who last": {operands: "-*"},
		"systemctl service initctl": {operands: "-*"},
	}
}

// tableEntry is a compiled row.
type tableEntry struct {
	g        grammar
	operands []string
	implied  role
}

func compileRows() map[string]tableEntry {
	rows := readingRows()
	maps.Copy(rows, writingRows())
	maps.Copy(rows, toolRows())
	out := make(map[string]tableEntry, len(rows)*3)
	for names, r := range rows {
		e := tableEntry{g: newGrammar(r.opts), operands: strings.Fields(r.operands)}
		if r.implied != "" {
			e.implied = roleOf(r.implied[0])
		}
		for n := range strings.FieldsSeq(names) {
			out[n] = e
		}
	}
	return out
}

// tableOperands judges the words of a command by its row, or by the rule for
// unknown commands when it has none.
func (w *walker) tableOperands(st *state, c *cmd) {
	e, ok := w.a.tab().rows[c.name]
	if !ok || c.own {
		w.guessAll(st, c, c.args)
		return
	}
	p := e.g.split(c.args)
	w.optionPaths(st, c, e.g, p)
	operands := e.operands
	if len(operands) > 0 && operands[0] == "p" && p.has("-f", "--from-file", "-e") {
		operands = operands[1:] // the pattern came with an option
	}
	w.roles(st, c, operands, p.rest)
	if len(p.rest) == 0 && e.implied != roleNone {
		w.implied(st, c, e.implied)
	}
}

// roles gives each operand the role of its place: those before the repeated
// one from the front, those after it from the back.
func (w *walker) roles(st *state, c *cmd, pattern []string, rest []word) {
	star := -1
	for i, p := range pattern {
		if strings.HasSuffix(p, "*") {
			star = i
		}
	}
	for i, x := range rest {
		at := i
		if star >= 0 && i >= star {
			at = star
			if back := len(rest) - i; back < len(pattern)-star {
				at = len(pattern) - back
			}
		}
		if at >= len(pattern) {
			w.guess(st, c, x)
			continue
		}
		r := roleOf(pattern[at][0])
		if x.is("-") && (r == roleRead || r == roleWrite) {
			continue
		}
		w.path(st, c, x, r)
	}
}

// tables is everything that is looked up by a command's name.
type tables struct {
	handlers map[string]handler
	rows     map[string]tableEntry
	watched  map[string]bool // names a link must not hide

	versioned map[string]bool // names that are also found with a version behind them
}

// handler finds the one for a name, which may end in a version or be that of a
// program loader.
func (t *tables) handler(name string) (handler, bool) {
	if h, ok := t.handlers[name]; ok {
		return h, true
	}
	switch arch, isQemu := strings.CutPrefix(name, "qemu-"); {
	case strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so"):
		name = "ld.so"
	case isQemu && !strings.HasPrefix(arch, "system-") && strings.ContainsAny(arch, "36") || arch == "arm" || arch == "arm-static":
		name = "qemu-user"
	default:
		name = withoutVersion(name)
		if !t.versioned[name] {
			return nil, false
		}
	}
	h, ok := t.handlers[name]
	return h, ok
}

// withoutVersion takes a version off the name of a program: bash5, lua5.4.
func withoutVersion(name string) string {
	return strings.TrimRight(name, "0123456789.-")
}

func newTables() *tables {
	t := &tables{handlers: map[string]handler{}, rows: compileRows(), watched: map[string]bool{}, versioned: map[string]bool{}}
	for _, n := range slices.Concat(shellNames(), interpreters()) {
		t.versioned[n] = true
	}
	wrappers := wrapperRows()
	maps.Copy(wrappers, runnerRows())
	for n, r := range wrappers {
		t.handlers[n] = r.unwrap(n)
	}
	maps.Copy(t.handlers, builtins())
	for names, r := range carrierRows() {
		h := r.carry()
		for n := range strings.FieldsSeq(names) {
			t.handlers[n] = h
		}
	}
	maps.Copy(t.handlers, programs())
	for _, n := range shellNames() {
		t.handlers[n] = shell
	}
	for _, n := range []string{
		"sudo", "doas", "su", "pkexec", "run0", "mke2fs", "shutdown", "reboot", "halt", "poweroff", "curl", "wget", "nc",
		"ncat", "netcat", "dd", "rm", "git", "bash", "dash", "busybox", "toybox", "env", "nc.openbsd", "nc.traditional",
		"eval", "init", "systemctl", "find", "xargs", "truncate", "mkfs",
	} {
		t.watched[n] = true
	}
	return t
}
