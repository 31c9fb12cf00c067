// Package lab runs a whole world for Tenon on one machine, without containers: a real Kubernetes control plane (etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager), kwok in the place of the kubelets, Temporal's development
// server with its web UI, the simulated EC2 and Tenon's worker. `tenon dev` is this package with a command line; the
// end-to-end tests start the parts they need.
//
// # One directory
//
// Everything a lab knows is in one directory: what must survive (etcd's data, Temporal's SQLite file, the simulator's
// state, keys, the ports chosen) and what is written again at every start (kubeconfigs, component configurations, env,
// pids/NAME.pid, logs/NAME.log). Starting on a directory that holds a lab resumes it, however it ended. A lock held on
// a file in the directory keeps a second lab away; the kernel frees it when its holder dies.
//
// # Processes
//
// Every component is a child process, supervised: one that dies is started again after a pause that doubles from 0.2 s
// to 5 s. Components start as soon as those they need are healthy, and stop in the reverse order. The kernel kills the
// children should the supervising process die without stopping them (on Linux), so nothing is ever left behind.
//
// # Ports
//
// All listeners are on 127.0.0.1, on ports that were free when the directory was first used. They are kept for as long
// as they are free, so that a UI opened in a browser survives a restart.
//
// # What is different from a cluster in production
//
// Every component has its own user in the API server, which shows in audit logs. Tenon's worker has the rights that the
// Helm chart grants it, and in the simulated AWS those of deploy/iam; the simulator and kwok, which have no counterpart in production, have all. etcd does not wait
// for the disk: a power cut may lose data, a killed process does not. Nodes exist only where the simulated cloud
// created them: kwok manages nodes labelled SimulatedNodeLabel and no others.
//
// # The files
//
// Reading order: component, options, users, layout, state, site, pki, child_linux, spawner, progress, process, leftover,
// lock, files, health, resources, specs, startup, lab.
package lab
