//go:build !linux

package lab

import "syscall"

// childAttributes puts a child into its own process group, so that Ctrl-C reaches only the lab, which then stops its
// children in order. If the lab is killed, the next start or stop on the directory ends its children.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
