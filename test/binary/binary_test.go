package binary

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// mostBytes is how large the program may be.
const mostBytes = 90_000_000

// root is the top of the repository.
const root = "../.."

// onlyLab are the names of functions, and texts, of what belongs to the laboratory. The names of functions are in every Go program,
// for stack traces.
var onlyLab = []string{
	"github.com/tenon-sh/tenon/cloud/ec2sim.",
	"github.com/tenon-sh/tenon/internal/failpoint.",
	"github.com/tenon-sh/tenon/lab.",
	"github.com/tenon-sh/tenon/lab/demo.",
	"TENON_FAILPOINTS",
	"/_sim/reset",
}

// built returns the path of a program that make build has built.
func built(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(root, "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("make build has to come first: %v", err)
	}
	return path
}

// TestProductionHasNoTestCode looks for the laboratory in both programs: it has to be in one of them, or it is looked for in vain.
func TestProductionHasNoTestCode(t *testing.T) {
	t.Parallel()
	production, err := os.ReadFile(built(t, "tenon"))
	if err != nil {
		t.Fatal(err)
	}
	laboratory, err := os.ReadFile(built(t, "tenon-lab"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range onlyLab {
		if bytes.Contains(production, []byte(text)) {
			t.Errorf("bin/tenon contains %s", text)
		}
		if !bytes.Contains(laboratory, []byte(text)) {
			t.Errorf("bin/tenon-lab does not contain %s", text)
		}
	}
	if worker := "github.com/tenon-sh/tenon/worker."; !bytes.Contains(production, []byte(worker)) {
		t.Errorf("bin/tenon does not contain %s", worker)
	}
}

// TestProgramIsStatic: it needs no C library and no dynamic linker, and has no symbols for a debugger.
func TestProgramIsStatic(t *testing.T) {
	t.Parallel()
	path := built(t, "tenon")
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Errorf("it has a segment %s", part.Type)
		}
	}
	for _, section := range program.Sections {
		if section.Name == ".symtab" || strings.HasPrefix(section.Name, ".debug_") {
			t.Errorf("it has a section %s", section.Name)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > mostBytes {
		t.Errorf("it has %d bytes, more than %d", info.Size(), mostBytes)
	}
}

// version is what `tenon version -o json` prints.
type version struct{ Version, Commit, Go, Platform string }

// says asks the program for its version.
func says(t *testing.T) version {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), built(t, "tenon"), "version", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var v version
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestProgramSaysWhatItIs compares what the program says of itself with git and with what the go command has written into it.
func TestProgramSaysWhatItIs(t *testing.T) {
	t.Parallel()
	got := says(t)
	commit, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatalf("ask git for the commit: %v", err)
	}
	want := version{Version: got.Version, Commit: strings.TrimSpace(string(commit)), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if got != want || got.Version == "" || got.Version == "dev" {
		t.Errorf("bin/tenon says %+v, and this is %+v: if it is older, run make build", got, want)
	}
	info, err := buildinfo.ReadFile(built(t, "tenon"))
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" {
		t.Errorf("it was built with %v", settings)
	}
}

// TestBuildsAreTheSame builds the program again from a copy of the tree in another directory, and compares the two bit by bit. The
// go command takes what it has compiled before from its cache; with TENON_REBUILD set, it compiles everything again.
func TestBuildsAreTheSame(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "elsewhere")
	copyTree(t, dir)
	v := says(t)
	out := "bin/release/tenon-" + strings.ReplaceAll(v.Platform, "/", "-")
	cmd := exec.CommandContext(t.Context(), "make", "-C", dir, out, "VERSION="+v.Version, "COMMIT="+v.Commit)
	// Make tells the makes that it starts about itself.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=")
	if os.Getenv("TENON_REBUILD") != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+t.TempDir())
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build in %s: %v\n%s", dir, err, text)
	}
	first, second := sum(t, built(t, "tenon")), sum(t, filepath.Join(dir, out))
	if first != second {
		t.Errorf("bin/tenon is %s, and its code elsewhere builds %s: if bin/tenon is older than the code, run make build", first, second)
	}
}

// copyTree copies the files that git knows, or would add.
func copyTree(t *testing.T, dir string) {
	t.Helper()
	list, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Fatalf("list the files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		from, to := filepath.Join(root, name), filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(from)
		switch {
		case os.IsNotExist(err): // removed, and not yet committed
		case err != nil:
			t.Fatal(err)
		case info.Mode().Type() == os.ModeSymlink:
			target, err := os.Readlink(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, to); err != nil {
				t.Fatal(err)
			}
		default:
			text, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func sum(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}
