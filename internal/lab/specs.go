package lab

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// specs returns the command lines of every component, in the order in which they start.
func (l *Lab) specs() []spec {
	specs := []spec{
		l.etcd(), l.apiServer(), l.controllerManager(), l.scheduler(), l.kwok(), l.temporal(), l.ec2sim(), l.worker(),
	}
	for i := range specs {
		s := &specs[i]
		s.path = l.opts.program(s.name)
		if slices.Contains(ControlPlane(), s.name) { // programs of a multi-call binary
			s.args = append([]string{string(s.name)}, s.args...)
		}
		if s.name != Worker && s.name != EC2Sim { // the others need not be thrifty, and the machine has more memory than processors
			s.env = append(s.env, "GOGC=300")
		}
		if l.opts.Large {
			s.spare()
		}
		s.args = append(s.args, l.opts.Args[s.name]...)
		s.env = slices.Concat(inheritedEnv(), []string{directoryVariable + "=" + l.layout.dir}, s.env, l.opts.Env[s.name])
	}
	return specs
}

// spare has a component of the control plane spare the machine (Options.Large).
func (s *spec) spare() {
	if s.name == ControllerManager {
		// Of two flags of one name the last one counts.
		s.args = append(s.args, "--node-monitor-grace-period=6h", "--node-monitor-period=10s")
	}
}

// inheritedEnv is this process's environment without what could lead a component to another cluster, another Temporal
// server or the real AWS.
func inheritedEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		for _, prefix := range []string{"AWS_", "KUBE", "TEMPORAL_"} {
			if strings.HasPrefix(variable, prefix) {
				return true
			}
		}
		return false
	})
}

func (l *Lab) etcd() spec {
	client, peer := "http://"+l.state.address(portEtcd), "http://"+l.state.address(portEtcdPeer)
	return spec{
		name:  Etcd,
		ports: []port{portEtcd, portEtcdPeer},
		args: []string{
			"--name=lab",
			"--data-dir=" + l.layout.etcdData(),
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=lab=" + peer,
			"--unsafe-no-fsync=true", // a killed process loses nothing, only a power cut does
			"--quota-backend-bytes=4294967296",
			"--max-request-bytes=8388608",
			"--auto-compaction-mode=periodic",
			"--auto-compaction-retention=5m",
			"--log-level=warn",
		},
		healthy: httpOK(client + "/health"),
	}
}

func (l *Lab) apiServer() spec {
	pki := l.layout.pki
	return spec{
		name:  APIServer,
		ports: []port{portAPIServer},
		needs: []Component{Etcd},
		args: []string{
			"--etcd-servers=http://" + l.state.address(portEtcd),
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", l.state.Ports[portAPIServer]),
			"--advertise-address=127.0.0.1",
			"--endpoint-reconciler-type=none",
			"--allow-privileged=true",
			"--tls-cert-file=" + pki(serverCert),
			"--tls-private-key-file=" + pki(serverKey),
			"--client-ca-file=" + pki(caCert),
			"--token-auth-file=" + pki(tokensFile),
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + pki(serviceAccountsKey),
			"--service-account-signing-key-file=" + pki(serviceAccountsKey),
			// The second range is that of the simulated IPv6 cluster.
			"--service-cluster-ip-range=10.96.0.0/16,fd5e:7e00:0:a::/108",
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=0",
			"--max-mutating-requests-inflight=0",
			"--event-ttl=10m",
			"--profiling=false",
		},
		healthy: httpsOK(l.layout, l.APIServerURL()+"/readyz"),
	}
}

func (l *Lab) controllerManager() spec {
	kubeconfig, pki := l.layout.kubeconfig(userControllerManager), l.layout.pki
	url := "https://" + l.state.address(portControllerManager)
	return spec{
		name:  ControllerManager,
		ports: []port{portControllerManager},
		needs: []Component{APIServer},
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authentication-skip-lookup=true", // there is no front proxy to learn of
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", l.state.Ports[portControllerManager]),
			"--tls-cert-file=" + pki(serverCert),
			"--tls-private-key-file=" + pki(serverKey),
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + pki(serviceAccountsKey),
			"--root-ca-file=" + pki(caCert),
			"--cluster-signing-cert-file=" + pki(caCert),
			"--cluster-signing-key-file=" + pki(caKey),
			"--flex-volume-plugin-dir=" + l.layout.path("flexvolume"), // otherwise it makes one under /usr/libexec
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
			"--concurrent-replicaset-syncs=20",
			"--concurrent-deployment-syncs=20",
			"--concurrent-job-syncs=20",
			"--concurrent-gc-syncs=50",
			"--node-monitor-period=2s",
			"--node-monitor-grace-period=50s",
			// Those that only work with a cloud or hand out addresses.
			"--controllers=*,-node-ipam-controller,-service-lb-controller,-node-route-controller,-cloud-node-lifecycle-controller",
			"--profiling=false",
		},
		healthy: allOf(httpsOK(l.layout, url+"/healthz"), l.defaultServiceAccountExists),
	}
}

func (l *Lab) scheduler() spec {
	kubeconfig := l.layout.kubeconfig(userScheduler)
	return spec{
		name:  Scheduler,
		ports: []port{portScheduler},
		needs: []Component{APIServer},
		args: []string{
			"--config=" + l.layout.config(schedulerConfig),
			"--authentication-kubeconfig=" + kubeconfig,
			"--authentication-skip-lookup=true", // there is no front proxy to learn of
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", l.state.Ports[portScheduler]),
			"--tls-cert-file=" + l.layout.pki(serverCert),
			"--tls-private-key-file=" + l.layout.pki(serverKey),
		},
		healthy: httpsOK(l.layout, "https://"+l.state.address(portScheduler)+"/healthz"),
	}
}

func (l *Lab) kwok() spec {
	return spec{
		name:  Kwok,
		ports: []port{portKwok},
		needs: []Component{APIServer},
		args: []string{
			"--config=" + l.layout.config(kwokConfig),
			"--kubeconfig=" + l.layout.kubeconfig(userKwok),
			"--v=WARN",
		},
		// A new kwok waits until the leases of the one before it have run out, and plays no kubelet meanwhile.
		prepare: l.deleteNodeLeases,
		healthy: httpOK("http://" + l.state.address(portKwok) + "/healthz"),
	}
}

// searchAttributes are the workflow attributes that Tenon's workflows set, all of type Keyword. SQL visibility has room
// for ten.
func searchAttributes() []string {
	return []string{"TenonCluster", "NodePool", "NodeClaim", "Node", "Instance", "Zone", "Phase", "Reason"}
}

func (l *Lab) temporal() spec {
	args := []string{
		"server", "start-dev",
		"--ip=127.0.0.1",
		fmt.Sprintf("--port=%d", l.state.Ports[portTemporal]),
		fmt.Sprintf("--ui-port=%d", l.state.Ports[portTemporalUI]),
		"--db-filename=" + l.layout.temporalDB(),
		"--sqlite-pragma=journal_mode=WAL",
		"--sqlite-pragma=synchronous=NORMAL",
		"--log-level=warn",
		"--disable-config-file", "--disable-config-env",
	}
	for _, name := range searchAttributes() {
		args = append(args, "--search-attribute="+name+"=Keyword")
	}
	for _, setting := range []string{
		// One partition: with a few workers, more only add hops.
		"matching.numTaskqueueReadPartitions=1",
		"matching.numTaskqueueWritePartitions=1",
		// With the default poll rates a signal waits some 40 ms for its workflow task, with these 10.
		"history.transferProcessorMaxPollRPS=1000",
		"history.timerProcessorMaxPollRPS=1000",
		"history.visibilityProcessorMaxPollRPS=100",
		`history.timerProcessorMaxTimeShift="100ms"`,
		"frontend.enableServerVersionCheck=false", // a laboratory calls nobody
	} {
		args = append(args, "--dynamic-config-value="+setting)
	}
	return spec{
		name:    Temporal,
		ports:   []port{portTemporal, portTemporalUI},
		args:    args,
		healthy: allOf(httpOK(l.UIURL()+"/"), l.temporalServes),
	}
}

func (l *Lab) ec2sim() spec {
	args := []string{
		"ec2sim",
		"--listen=" + l.state.address(portEC2Sim),
		"--state=" + l.layout.ec2simState(),
		"--kubeconfig=" + l.layout.kubeconfig(userEC2Sim),
		"--cluster=" + l.state.Cluster,
		"--policies=" + l.layout.policies(),
	}
	if l.opts.BootDelay > 0 {
		args = append(args, "--boot-delay="+l.opts.BootDelay.String())
	}
	return spec{
		name:    EC2Sim,
		ports:   []port{portEC2Sim},
		needs:   []Component{APIServer},
		args:    args,
		healthy: httpAnswers(l.EC2SimURL() + "/healthz"),
	}
}

func (l *Lab) worker() spec {
	health := l.state.address(portWorkerHealth)
	var env []string
	for name, value := range l.WorkerEnv() {
		env = append(env, name+"="+value)
	}
	// Of two settings of one variable the last counts: the worker has rights of its own in Kubernetes.
	env = append(env,
		"KUBECONFIG="+l.layout.kubeconfig(userTenon),
		"TENON_HEALTH_PROBE_ADDRESS="+health,
		"TENON_METRICS_ADDRESS="+l.state.address(portWorkerMetrics),
		"TENON_LEADER_ELECTION_NAMESPACE="+leaseNamespace,
		"TENON_LEADER_ELECTION_NAME="+leaseName,
		// A stable identity lets the successor of a killed worker take over its Lease at once.
		"TENON_IDENTITY="+l.state.Cluster+"-worker",
	)
	return spec{
		name:           Worker,
		ports:          []port{portWorkerHealth, portWorkerMetrics},
		needs:          []Component{APIServer, Temporal, EC2Sim},
		needsResources: true,
		args:           []string{"worker"},
		env:            env,
		healthy:        httpOK("http://" + health + "/readyz"),
	}
}

// allOf succeeds when every check does.
func allOf(checks ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, check := range checks {
			if err := check(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
