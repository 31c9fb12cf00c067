package lab

import "syscall"

// childAttributes puts a child into a process group of its own, so that Ctrl-C reaches the lab alone and it can stop
// its children in order, and lets the kernel kill the child when the lab dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
