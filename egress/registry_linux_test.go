package egress

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// registries stands for the places that developers' programs load from: one
// package each for npm, pip and go, and a repository of git.
func registries(t *testing.T) http.HandlerFunc {
	t.Helper()
	files := map[string][]byte{
		"/npm/thing":                          []byte(`{"name":"thing","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"thing","version":"1.0.0","dist":{"tarball":"https://example.com/npm/thing.tgz"}}}}`),
		"/npm/thing.tgz":                      tarOf(t, map[string]string{"package/package.json": `{"name":"thing","version":"1.0.0"}`, "package/index.js": "module.exports = 'from npm'\n"}),
		"/simple/thing/":                      []byte(`<a href="/thing-1.0.0-py3-none-any.whl">thing-1.0.0-py3-none-any.whl</a>`),
		"/go/example.org/thing/@v/list":       []byte("v1.0.0\n"),
		"/go/example.org/thing/@v/v1.0.0.mod": []byte("module example.org/thing\n"),
		"/go/example.org/thing/@v/v1.0.0.info": []byte(
			`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`,
		),
		"/go/example.org/thing/@v/v1.0.0.zip": zipOf(t, map[string]string{
			"example.org/thing@v1.0.0/go.mod": "module example.org/thing\n", "example.org/thing@v1.0.0/thing.go": "package thing\n",
		}),
		"/thing-1.0.0-py3-none-any.whl": zipOf(t, map[string]string{
			"thing.py": "print('from pip')\n", "thing-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: thing\nVersion: 1.0.0\n",
			"thing-1.0.0.dist-info/WHEEL":  "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
			"thing-1.0.0.dist-info/RECORD": "thing.py,,\nthing-1.0.0.dist-info/METADATA,,\nthing-1.0.0.dist-info/WHEEL,,\nthing-1.0.0.dist-info/RECORD,,\n",
		}),
	}
	repo := http.StripPrefix("/git/", http.FileServer(http.Dir(repository(t))))
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/git/") {
			repo.ServeHTTP(w, r)
			return
		}
		b, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/thing/") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write(b)
	}
}

// repository is a bare repository with one commit, fit for plain file servers.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, script := range []string{
		"git init -q -b main work", "echo from git > work/file", "git -C work add file",
		"git -C work -c user.name=t -c user.email=t@example.com commit -qm first", "git clone -q --bare work repo.git", "git -C repo.git update-server-info",
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", script, err, out)
		}
	}
	return dir
}

func zipOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = fmt.Fprint(w, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	g := gzip.NewWriter(&b)
	w := tar.NewWriter(g)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What developers load programs with works through the proxy, and for those
// that are not told of it, without.
func TestDevelopersPrograms(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	in := newInside(t, []string{"example.com"}, registries(t), nil)
	const bare = "unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy ALL_PROXY all_proxy npm_config_proxy npm_config_https_proxy PIP_PROXY; "
	for name, tt := range map[string]struct{ program, script, want string }{
		"git":   {"git", "git clone -q https://example.com/git/repo.git && cat repo/file", "from git"},
		"git 2": {"git", "git clone -q http://example.com/git/repo.git && cat repo/file", "from git"},
		"npm":   {"npm", "npm install --no-audit --no-fund --registry https://example.com/npm/ thing >log 2>&1 || cat log; node -p 'require(\"thing\")'", "from npm"},
		"pip":   {"python3", "python3 -m pip install -q --disable-pip-version-check --index-url https://example.com/simple/ --target . thing && python3 -c 'import thing'", "from pip"},
		"go": {"go", "export GOPROXY=https://example.com/go GONOSUMDB=* GOFLAGS=-mod=mod GOTOOLCHAIN=local GOPATH=$PWD/p GOCACHE=$PWD/c; " +
			"go mod init x 2>/dev/null; go get example.org/thing 2>&1 && go list -m example.org/thing; chmod -R u+w p", "example.org/thing v1.0.0"},
	} {
		for how, prefix := range map[string]string{"": "", " untold": bare} {
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(tt.program); err != nil {
					t.Skip(err)
				}
				dir := strings.ReplaceAll(name+how, " ", "-")
				if err := os.Mkdir(filepath.Join(in.root, dir), 0o700); err != nil {
					t.Fatal(err)
				}
				out := in.run(t, "cd "+dir+" && export HOME=$PWD && "+prefix+tt.script)
				if got := strings.TrimSpace(out.Combined.Text()); !strings.HasSuffix(got, tt.want) || out.ExitCode != 0 || len(out.Violations) > 0 {
					t.Errorf("%d %s %+v", out.ExitCode, got, out.Violations)
				}
			})
		}
	}
}
