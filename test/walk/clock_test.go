package walk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// clock is by how much a worker's clock is ahead of this machine's, in a file that the worker reads. A process has no clock
// of its own, and stepping the machine's clock would affect every process: so the worker is built with a standard library
// whose time.Now adds the file's value. Monotonic time continues unchanged, as it does when a clock is stepped. The program
// differs in nothing else.
type clock struct{ file, program string }

// nowInTime is the line in the standard library's time.go at which time.Now reads the clock.
const nowInTime = "\tsec, nsec, mono := runtimeNow()\n"

// stepped is added to the standard library's package time.
const stepped = `package time

import (
	"sync/atomic"
	"syscall"
)

var stepped atomic.Int64

func init() {
	name, found := syscall.Getenv("WALK_CLOCK")
	if !found {
		return
	}
	go func() {
		for {
			if file, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
				var text [20]byte
				n, _ := syscall.Read(file, text[:])
				_ = syscall.Close(file)
				seconds, sign := int64(0), int64(1)
				for _, c := range text[:max(n, 0)] {
					if c == '-' {
						sign = -1
					} else if c >= '0' && c <= '9' {
						seconds = 10*seconds + int64(c-'0')
					}
				}
				stepped.Store(sign * seconds)
			}
			Sleep(100 * Millisecond)
		}
	}()
}
`

// buildWithClock builds the program so that its clock can be stepped.
func buildWithClock(t testing.TB) *clock {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), nowInTime) != 1 {
		t.Fatalf("time.Now of this version of Go does not read the clock with %q", nowInTime)
	}
	overlay := map[string]string{}
	for name, text := range map[string]string{"time.go": strings.Replace(string(source), nowInTime, nowInTime+"\tsec += stepped.Load()\n", 1), "stepped.go": stepped} {
		overlay[filepath.Join(library, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{file: filepath.Join(dir, "clock"), program: filepath.Join(dir, "tenon-lab")}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.step(0); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", c.program, "./cmd/tenon-lab")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tenon-lab with a clock of its own: %v\n%s", err, out)
	}
	return c
}

// step sets by how much the worker's clock is ahead, or behind if negative.
func (c *clock) step(ahead time.Duration) error {
	return os.WriteFile(c.file, strconv.AppendInt(nil, int64(ahead/time.Second), 10), 0o600)
}
