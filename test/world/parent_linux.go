package world

import "syscall"

// DieTogether makes a process die with the test, however that ends.
func DieTogether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
