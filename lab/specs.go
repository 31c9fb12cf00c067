package lab

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// components builds the specs of a lab's components.
type components struct {
	site
	opts Options
}

// specs returns the specs of all components, in the order in which they start.
func (c components) specs() []spec {
	specs := []spec{
		c.etcd(), c.apiServer(), c.controllerManager(), c.scheduler(), c.kwok(), c.postgres(), c.temporal(), c.ec2sim(), c.worker(),
	}
	for i := range specs {
		s := &specs[i]
		s.path = c.opts.program(s.name)
		if slices.Contains(ControlPlane(), s.name) { // one multi-call binary holds them all
			s.args = append([]string{string(s.name)}, s.args...)
		}
		if s.name != Worker { // trades memory for CPU time, which is scarcer
			s.env = append(s.env, "GOGC=400")
		}
		if c.opts.Large {
			s.spare()
		}
		s.args = append(s.args, c.opts.Args[s.name]...)
		s.env = slices.Concat(Environ(), []string{directoryVariable + "=" + c.layout.dir}, s.env, c.opts.Env[s.name])
	}
	return specs
}

// spare adds the arguments of Options.Large to a component of the control plane.
func (s *spec) spare() {
	if s.name == ControllerManager {
		// If a flag occurs twice, the last one counts.
		s.args = append(s.args, "--node-monitor-grace-period=6h", "--node-monitor-period=10s")
	}
}

// Environ returns this process's environment without variables that could lead a component to another cluster, another
// Temporal server or the real AWS, and without those that change how a Go program runs.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		for _, prefix := range []string{"AWS_", "KUBE", "TEMPORAL_", "GOGC=", "GODEBUG=", "GOMEMLIMIT="} {
			if strings.HasPrefix(variable, prefix) {
				return true
			}
		}
		return false
	})
}

func (c components) etcd() spec {
	client, peer := "http://"+c.state.address(portEtcd), "http://"+c.state.address(portEtcdPeer)
	return spec{
		name:  Etcd,
		ports: []port{portEtcd, portEtcdPeer},
		args: []string{
			"--name=lab",
			"--data-dir=" + c.layout.etcdData(),
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

func (c components) apiServer() spec {
	pki := c.layout.pki
	return spec{
		name:  APIServer,
		ports: []port{portAPIServer},
		needs: []Component{Etcd},
		args: []string{
			"--etcd-servers=http://" + c.state.address(portEtcd),
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", c.state.Ports[portAPIServer]),
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
		healthy: httpsOK(c.layout, c.APIServerURL()+"/readyz"),
	}
}

func (c components) controllerManager() spec {
	kubeconfig, pki := c.layout.kubeconfig(userControllerManager), c.layout.pki
	url := "https://" + c.state.address(portControllerManager)
	return spec{
		name:  ControllerManager,
		ports: []port{portControllerManager},
		needs: []Component{APIServer},
		args: []string{
			"--kubeconfig=" + kubeconfig,
			"--authentication-kubeconfig=" + kubeconfig,
			"--authentication-skip-lookup=true", // there is no front proxy
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", c.state.Ports[portControllerManager]),
			"--tls-cert-file=" + pki(serverCert),
			"--tls-private-key-file=" + pki(serverKey),
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + pki(serviceAccountsKey),
			"--root-ca-file=" + pki(caCert),
			"--cluster-signing-cert-file=" + pki(caCert),
			"--cluster-signing-key-file=" + pki(caKey),
			"--flex-volume-plugin-dir=" + c.layout.path("flexvolume"), // by default it creates one under /usr/libexec
			"--kube-api-qps=1000",
			"--kube-api-burst=2000",
			"--concurrent-replicaset-syncs=20",
			"--concurrent-deployment-syncs=20",
			"--concurrent-job-syncs=20",
			"--concurrent-gc-syncs=50",
			"--node-monitor-period=2s",
			"--node-monitor-grace-period=50s",
			// Excludes controllers that need a cloud or assign addresses, and the one that tells kubelets how long to cache.
			"--controllers=*,-node-ipam-controller,-service-lb-controller,-node-route-controller,-cloud-node-lifecycle-controller,-ttl-controller",
			"--profiling=false",
		},
		healthy: allOf(httpsOK(c.layout, url+"/healthz"), c.defaultServiceAccountExists),
	}
}

func (c components) scheduler() spec {
	kubeconfig := c.layout.kubeconfig(userScheduler)
	return spec{
		name:  Scheduler,
		ports: []port{portScheduler},
		needs: []Component{APIServer},
		args: []string{
			"--config=" + c.layout.config(schedulerConfig),
			"--authentication-kubeconfig=" + kubeconfig,
			"--authentication-skip-lookup=true", // there is no front proxy
			"--authorization-kubeconfig=" + kubeconfig,
			"--bind-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", c.state.Ports[portScheduler]),
			"--tls-cert-file=" + c.layout.pki(serverCert),
			"--tls-private-key-file=" + c.layout.pki(serverKey),
		},
		healthy: httpsOK(c.layout, "https://"+c.state.address(portScheduler)+"/healthz"),
	}
}

func (c components) kwok() spec {
	return spec{
		name:  Kwok,
		ports: []port{portKwok},
		needs: []Component{APIServer},
		args: []string{
			"--config=" + c.layout.config(kwokConfig),
			"--kubeconfig=" + c.layout.kubeconfig(userKwok),
			"--v=WARN",
		},
		// A new kwok waits for its predecessor's leases to expire before it manages the nodes.
		prepare: c.deleteNodeLeases,
		healthy: httpOK("http://" + c.state.address(portKwok) + "/healthz"),
	}
}

// searchAttributes returns the search attributes that Tenon's workflows set, all of type Keyword. SQL visibility has room
// for ten.
func searchAttributes() []string {
	return []string{"TenonCluster", "NodePool", "NodeClaim", "Node", "Instance", "Zone", "Phase", "Reason"}
}

func (c components) temporal() spec {
	if c.opts.Postgres {
		return c.temporalServer()
	}
	args := []string{
		"server", "start-dev",
		"--ip=127.0.0.1",
		fmt.Sprintf("--port=%d", c.state.Ports[portTemporal]),
		fmt.Sprintf("--ui-port=%d", c.state.Ports[portTemporalUI]),
		"--db-filename=" + c.layout.temporalDB(),
		"--sqlite-pragma=journal_mode=WAL",
		"--sqlite-pragma=synchronous=NORMAL",
		"--log-level=warn",
		"--disable-config-file", "--disable-config-env",
	}
	for _, name := range searchAttributes() {
		args = append(args, "--search-attribute="+name+"=Keyword")
	}
	for _, setting := range []string{
		// One partition: with few workers, more partitions only add hops.
		"matching.numTaskqueueReadPartitions=1",
		"matching.numTaskqueueWritePartitions=1",
		// With the default poll rates a signal waits about 40 ms for its workflow task, with these about 10 ms.
		"history.transferProcessorMaxPollRPS=1000",
		"history.timerProcessorMaxPollRPS=1000",
		"history.visibilityProcessorMaxPollRPS=100",
		`history.timerProcessorMaxTimeShift="100ms"`,
		"frontend.enableServerVersionCheck=false", // a lab makes no outside calls
	} {
		args = append(args, "--dynamic-config-value="+setting)
	}
	return spec{
		name:    Temporal,
		ports:   []port{portTemporal, portTemporalUI},
		args:    args,
		healthy: allOf(httpOK(c.UIURL()+"/"), c.temporalServes),
	}
}

func (c components) ec2sim() spec {
	args := []string{
		"ec2sim",
		"--listen=" + c.state.address(portEC2Sim),
		"--state=" + c.layout.ec2simState(),
		"--kubeconfig=" + c.layout.kubeconfig(userEC2Sim),
		"--cluster=" + c.state.Cluster,
		"--policies=" + c.layout.policies(),
	}
	if c.opts.BootDelay > 0 {
		args = append(args, "--boot-delay="+c.opts.BootDelay.String())
	}
	return spec{
		name:    EC2Sim,
		ports:   []port{portEC2Sim},
		needs:   []Component{APIServer},
		args:    args,
		healthy: httpAnswers(c.EC2SimURL() + "/healthz"),
	}
}

func (c components) worker() spec {
	health := c.state.address(portWorkerHealth)
	var env []string
	for name, value := range c.WorkerEnv() {
		env = append(env, name+"="+value)
	}
	// If a variable is set twice, the last value counts. The worker has its own user in Kubernetes.
	env = append(env,
		"KUBECONFIG="+c.layout.kubeconfig(userTenon),
		"TENON_HEALTH_PROBE_ADDRESS="+health,
		"TENON_METRICS_ADDRESS="+c.state.address(portWorkerMetrics),
		"TENON_LEADER_ELECTION_NAMESPACE="+leaseNamespace,
		"TENON_LEADER_ELECTION_NAME="+leaseName,
		// A stable identity lets the successor of a killed worker take over its Lease at once.
		"TENON_IDENTITY="+c.state.Cluster+"-worker",
		"TENON_PROVIDER="+c.opts.Provider,
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

// allOf combines checks: it succeeds when all of them do.
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
