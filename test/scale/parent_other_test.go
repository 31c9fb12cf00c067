//go:build !linux

package scale_test

import "syscall"

// dieTogether leaves a worker to the test's cleanup where the kernel offers nothing better.
func dieTogether() *syscall.SysProcAttr { return nil }
