package lab_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tenon-sh/tenon/lab"
)

// supervisorDir is an environment variable. When it is set, this test binary only runs a lab in that directory.
const supervisorDir = "TENON_TEST_SUPERVISOR_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(supervisorDir); dir != "" {
		os.Exit(supervise(dir))
	}
	os.Exit(m.Run())
}

// supervise runs a lab of one component, prints "ready" to standard output, and waits to be killed.
func supervise(dir string) int {
	_, err := lab.Start(context.Background(), lab.Options{
		Dir:        dir,
		Bin:        filepath.Join("..", "bin"),
		Components: []lab.Component{lab.Etcd},
		Progress:   os.Stderr,
	})
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return 1
	}
	os.Stdout.WriteString("ready\n")
	select {}
}

// TestChildrenDieWithTheirSupervisor kills a supervising process, so that it cannot stop anything, and checks that its
// children die.
func TestChildrenDieWithTheirSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), supervisorDir+"="+dir)
	cmd.Stderr = testWriter{t}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	pid := readPID(t, dir, lab.Etcd)
	if err := errors.Join(cmd.Process.Kill(), ignoreExit(cmd.Wait())); err != nil {
		t.Fatal(err)
	}
	if line != "ready\n" {
		t.Fatalf("the supervisor said %q, want ready", line)
	}
	if runtime.GOOS != "linux" {
		// Without a parent-death signal, the next start or stop on the directory ends the leftover children.
		if _, err := lab.StopRunning(context.Background(), dir); err != nil {
			t.Fatal(err)
		}
	}
	await(context.Background(), t, "etcd is dead", func(context.Context) (bool, error) { return !alive(pid), nil })
}

func readPID(t *testing.T, dir string, c lab.Component) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pids", string(c)+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// alive reports whether the process runs. A zombie has no command line.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err != nil || len(cmdline) > 0
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

func TestStopRunningWithoutLab(t *testing.T) {
	t.Parallel()
	if _, err := lab.StopRunning(context.Background(), t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stopping where no lab ever was: %v, want %v", err, os.ErrNotExist)
	}
}
