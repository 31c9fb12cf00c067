package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrRunning is wrapped by the error of Start when another process already runs a lab on the directory.
var ErrRunning = errors.New("already runs")

// lock prevents two labs from using one directory. The file contains the process id of its holder; the kernel frees the
// lock when the holder dies.
type lock struct{ file *os.File }

func acquire(path string) (*lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := holderOf(path)
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("a lab %w there (process %d)", ErrRunning, holder)
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid()))); err != nil {
		return nil, errors.Join(fmt.Errorf("writing the lock: %w", err), file.Close())
	}
	return &lock{file: file}, nil
}

func writeAt(file *os.File, s string) error {
	_, err := file.WriteAt([]byte(s), 0)
	return err
}

// release frees the lock; a second call does nothing.
func (l *lock) release() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("releasing the lock: %w", err)
	}
	return nil
}

// holderOf returns the process id in a lock file, or 0 if there is none.
func holderOf(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}

// StopRunning stops the lab that another process runs in dir and waits until its last process is gone. If no lab runs
// there, it only ends what a crash may have left, and returns false.
func StopRunning(ctx context.Context, dir string) (bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return false, fmt.Errorf("lab directory: %w", err)
	}
	layout := newLayout(dir)
	if _, err := os.Stat(layout.stateFile()); err != nil {
		return false, fmt.Errorf("%s holds no lab: %w", dir, err)
	}
	lock, err := acquire(layout.lockFile())
	if err == nil {
		return false, errors.Join(killLeftovers(layout), lock.release())
	}
	if !errors.Is(err, ErrRunning) {
		return false, err
	}
	holder := holderOf(layout.lockFile())
	if holder == 0 {
		return false, fmt.Errorf("%s is locked by an unknown process", dir)
	}
	if err := syscall.Kill(holder, syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("stopping process %d: %w", holder, err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if lock, err = acquire(layout.lockFile()); err == nil {
			return true, errors.Join(killLeftovers(layout), lock.release())
		}
		if !errors.Is(err, ErrRunning) {
			return false, err
		}
		select {
		case <-ctx.Done():
			// Its children die with it.
			_ = syscall.Kill(holder, syscall.SIGKILL)
			return true, fmt.Errorf("process %d did not stop in order and was killed: %w", holder, ctx.Err())
		case <-tick.C:
		}
	}
}
