package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

// runEtcd returns only when etcd was stopped in order; etcd exits by itself on failure.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}
