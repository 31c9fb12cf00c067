//go:build !linux

package handover_test

import "syscall"

// dieTogether leaves Karpenter to the test's cleanup where the kernel offers nothing better.
func dieTogether() *syscall.SysProcAttr { return nil }
