//go:build !linux

package world

import "syscall"

// DieTogether leaves a worker to the test's cleanup, because the kernel offers nothing better.
func DieTogether() *syscall.SysProcAttr { return nil }
