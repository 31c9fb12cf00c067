package labtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Build builds the current tenon and returns the path of a copy in a directory. Linking takes ten seconds of a processor, so
// all tests share one file in the module's bin directory, which go build leaves alone while it is up to date.
func Build(t testing.TB, dir string) string {
	t.Helper()
	return build(t, dir, "tenon")
}

// BuildLab does the same with tenon-lab, the program of a lab's simulator and worker.
func BuildLab(t testing.TB, dir string) string {
	t.Helper()
	return build(t, dir, "tenon-lab")
}

func build(t testing.TB, dir, name string) string {
	t.Helper()
	program := filepath.Join(dir, name)
	if err := copyOf(root(t), name, program); err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return program
}

// copyOf brings the file that all tests share up to date, and copies it.
func copyOf(root, name, program string) (err error) {
	shared := filepath.Join(root, "bin", "test", name)
	if err := os.MkdirAll(filepath.Dir(shared), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(shared+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // which frees the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	compile := exec.Command("go", "build", "-ldflags=-s -w", "-o", shared, "./cmd/"+name)
	compile.Dir = root
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	from, err := os.Open(shared)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := os.OpenFile(program, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
