package scale_test

import "syscall"

// dieTogether has a worker die with the test, however that ends.
func dieTogether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
