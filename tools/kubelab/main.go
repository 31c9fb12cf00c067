// Command kubelab is a whole Kubernetes control plane in one binary: etcd, kube-apiserver, kube-scheduler,
// kube-controller-manager, kwok (which plays the kubelets) and kubectl, all compiled from the Go module proxy at the
// versions pinned in go.mod. One binary shares what the six programs have in common, so it is a third of their size
// and one build instead of six.
//
// The program to run is the name the binary is called by (a symbolic link `kubectl` behaves as kubectl), or the first
// argument: `kubelab kube-apiserver --etcd-servers=...`. Everything after it is passed on unchanged.
//
// It is a module of its own because k8s.io/kubernetes replaces its staging modules and those replacements must not
// reach the main module.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // CronJobs with a timeZone must work on machines without a zone database

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// programs maps the name of each program to the function that runs it to its end and returns its exit code. Every
// function finds its command line in os.Args, as the original main function would.
var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          runAPIServer,
	"kube-controller-manager": runControllerManager,
	"kube-scheduler":          runScheduler,
	"kubectl":                 runKubectl,
	"kwok":                    runKwok,
}

func main() {
	if run, ok := programs[filepath.Base(os.Args[0])]; ok {
		os.Exit(run())
	}
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	fmt.Fprintf(os.Stderr, "usage: kubelab PROGRAM [FLAGS]\nprograms: %s\n", strings.Join(programNames(), ", "))
	os.Exit(2)
}

func programNames() []string {
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
