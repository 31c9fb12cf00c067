//go:build !linux

package lab

import "syscall"

// childAttributes puts a child into a process group of its own, so that Ctrl-C reaches the lab alone and it can stop
// its children in order. Should the lab be killed, its children are ended by the next start or stop on the directory.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
