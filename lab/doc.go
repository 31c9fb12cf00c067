// Package lab runs everything Tenon needs on one machine, without containers: a real Kubernetes control plane (etcd,
// kube-apiserver, kube-scheduler, kube-controller-manager), kwok in place of the kubelets, Temporal's development server
// with its web UI, the simulated EC2 and Tenon's worker. Instead of the simulated EC2, the worker can have the provider kwok
// (Options.Provider), which makes Nodes itself. `tenon-lab dev` is the command line of this package; the end-to-end
// tests start the parts they need.
//
// With Options.Postgres, Temporal is the released server on PostgreSQL, as production has it, instead.
//
// # One directory
//
// All of a lab's data is in one directory: what must survive (etcd's data, Temporal's SQLite file, the simulator's state,
// keys, the chosen ports) and what every start writes again (kubeconfigs, component configurations, env, pids/NAME.pid,
// logs/NAME.log). Starting on a directory that holds a lab resumes it, however it ended. A file lock in the directory
// prevents a second lab from using it; the kernel frees the lock when its holder dies.
//
// # Processes
//
// Every component is a supervised child process: when one dies, it is restarted after a pause that doubles from 0.2 s to
// 5 s. A component starts as soon as those it needs are healthy; components stop in the reverse order. On Linux, the
// kernel kills the children if the supervising process dies without stopping them, so no process is left behind.
//
// # Ports
//
// All listeners are on 127.0.0.1, on ports that were free when the directory was first used. A restart keeps each port if
// it is still free, so that a UI open in a browser keeps working.
//
// # What is different from a cluster in production
//
// Every component has its own user in the API server, which shows in audit logs. Tenon's worker has the rights that the
// Helm chart grants it, and in the simulated AWS those of deploy/iam. The simulator and kwok, which have no counterpart
// in production, have all rights. etcd does not wait for the disk: a power cut may lose data, a killed process does not.
// Nodes exist only where the simulated cloud created them: kwok manages only nodes labelled SimulatedNodeLabel.
//
// # The files
//
// Reading order: component, options, users, layout, state, site, pki, child_linux, spawner, progress, process, leftover,
// lock, files, health, resources, postgres, temporalserver, specs, startup, lab.
package lab
