package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// directoryVariable is the environment variable that holds the lab's directory in every child. It distinguishes a
// leftover child from an unrelated process that got the same process id.
const directoryVariable = "TENON_LAB_DIR"

// killLeftovers ends the processes that an earlier lab left behind in this directory, and removes their pid files. The
// caller holds the directory's lock, so nothing supervises these processes any more.
func killLeftovers(l layout) error {
	files, err := filepath.Glob(l.path("pids", "*.pid"))
	if err != nil {
		return fmt.Errorf("listing pid files: %w", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading a pid file: %w", err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		if pid == os.Getpid() {
			continue
		}
		if err == nil {
			if err := killChild(pid, l.dir); err != nil {
				return fmt.Errorf("ending what %s names: %w", file, err)
			}
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing a pid file: %w", err)
		}
	}
	return nil
}

// killChild kills the process if it is a child of a lab on dir, and waits until it is gone.
func killChild(pid int, dir string) error {
	deadline := time.Now().Add(stopGrace)
	for isChild(pid, dir) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d: %w", pid, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not die", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// isChild reports whether the process is alive and its environment names the directory. A zombie has no environment.
func isChild(pid int, dir string) bool {
	mark := directoryVariable + "=" + dir
	if environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ")); err == nil {
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if string(variable) == mark {
				return true
			}
		}
		return false
	}
	// Systems without /proc: BSD's ps prints the environment after the command.
	out, err := exec.Command("ps", "-E", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out)+" ", mark+" ")
}
