package lab

import "syscall"

// childAttributes puts a child into its own process group, so that Ctrl-C reaches only the lab, which then stops its
// children in order. The kernel kills the child when the lab dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
