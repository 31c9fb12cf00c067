package lab

import (
	"os/exec"
	"runtime"
)

// spawner starts child processes from one operating system thread that lives as long as the lab. Linux delivers the
// parent-death signal when the *thread* that started a child ends, and Go may end a thread at any time.
type spawner struct{ requests chan func() }

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// start starts cmd. It must not be called after close.
func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error)
	s.requests <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. All children must be gone.
func (s *spawner) close() { close(s.requests) }
