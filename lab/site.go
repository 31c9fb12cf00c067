package lab

import (
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// workerAccessKey is the AWS access key of the worker. The simulator applies the worker's IAM policies to it; all
	// other callers have all rights.
	workerAccessKey = "worker"
	// simulatedAccount and simulatedRegion are the simulator's account and region.
	simulatedAccount = "123456789012"
	simulatedRegion  = "us-east-1"
)

// site is a lab's directory and the addresses of its listeners. Lab embeds it.
type site struct {
	layout layout
	state  *state
}

// Dir returns the lab's directory as an absolute path.
func (s site) Dir() string { return s.layout.dir }

// Cluster returns the cluster's name.
func (s site) Cluster() string { return s.state.Cluster }

// Kubeconfig returns the path of a kubeconfig with all rights.
func (s site) Kubeconfig() string { return s.layout.kubeconfig(userAdmin) }

// RESTConfig returns a client configuration with all rights and without client-side throttling.
func (s site) RESTConfig() (*rest.Config, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the lab's kubeconfig: %w", err)
	}
	cfg.QPS = -1
	return cfg, nil
}

// LogFile returns the path of a component's log.
func (s site) LogFile(c Component) string { return s.layout.log(c) }

// APIServerURL returns the address of the API server.
func (s site) APIServerURL() string { return "https://" + s.state.address(portAPIServer) }

// UIURL returns the address of Temporal's web UI.
func (s site) UIURL() string { return "http://" + s.state.address(portTemporalUI) }

// EC2SimURL returns the address of the simulated AWS.
func (s site) EC2SimURL() string { return "http://" + s.state.address(portEC2Sim) }

// WorkerHealthURL returns the address of the worker's probes.
func (s site) WorkerHealthURL() string { return "http://" + s.state.address(portWorkerHealth) }

// WorkerMetricsURL returns the address of the worker's metrics.
func (s site) WorkerMetricsURL() string { return "http://" + s.state.address(portWorkerMetrics) }

// TemporalAddress returns host and port of Temporal's gRPC frontend.
func (s site) TemporalAddress() string { return s.state.address(portTemporal) }

// PostgresAddress returns host and port of the PostgreSQL of a lab with Options.Postgres.
func (s site) PostgresAddress() string { return s.state.address(portPostgres) }

// PostgresData returns the directory of its data. It may be copied, replaced or removed while PostgreSQL is halted.
func (s site) PostgresData() string { return s.layout.postgresData() }

// TemporalData returns the path of Temporal's database. The file may be copied, replaced or removed while Temporal is
// halted.
func (s site) TemporalData() string { return s.layout.temporalDB() }

// Env returns the environment that connects kubectl, temporal, tenon and the AWS tools to this lab.
func (s site) Env() map[string]string {
	return map[string]string{
		"KUBECONFIG":            s.Kubeconfig(),
		"TEMPORAL_ADDRESS":      s.TemporalAddress(),
		"TEMPORAL_NAMESPACE":    "default",
		"TENON_CLUSTER":         s.state.Cluster,
		"TENON_UI_URL":          s.UIURL(),
		"TENON_EC2SIM_URL":      s.EC2SimURL(),
		"AWS_ENDPOINT_URL":      s.EC2SimURL(),
		"AWS_REGION":            simulatedRegion,
		"AWS_DEFAULT_REGION":    simulatedRegion, // the AWS CLI before version 2 knows only this name
		"AWS_ACCESS_KEY_ID":     "test",
		"AWS_SECRET_ACCESS_KEY": "test",
	}
}

// WorkerEnv is Env for a worker: it has only the AWS rights that deploy/iam grants, and its SDK reads no AWS profile of
// the local user.
func (s site) WorkerEnv() map[string]string {
	env := s.Env()
	env["AWS_ACCESS_KEY_ID"] = workerAccessKey
	env["AWS_CONFIG_FILE"], env["AWS_SHARED_CREDENTIALS_FILE"] = os.DevNull, os.DevNull
	env["AWS_EC2_METADATA_DISABLED"] = "true"
	return env
}

// clientset returns a Kubernetes client with all rights.
func (s site) clientset() (*kubernetes.Clientset, error) {
	cfg, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(cfg)
}
