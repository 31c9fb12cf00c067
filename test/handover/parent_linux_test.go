package handover_test

import "syscall"

// dieTogether has Karpenter die with the test, however that ends.
func dieTogether() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
