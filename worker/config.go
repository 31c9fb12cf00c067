package worker

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/activities"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/internal/tracing"
	"github.com/tenon-sh/tenon/plan"
)

// Config holds all settings of a worker. Flags sets it; every flag has an environment variable of the same name, such as
// TENON_CLUSTER for --cluster. Temporal is reached by Temporal's own standard configuration (TEMPORAL_ADDRESS,
// TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_...), AWS by its own, and Kubernetes through KUBECONFIG or the pod's
// service account.
type Config struct {
	// Cluster is the cluster's name: the EKS cluster, the Temporal task queue and the first part of every workflow id.
	Cluster string
	// HealthProbeAddress is where /healthz and /readyz are served, MetricsAddress where /metrics is; empty turns it off.
	HealthProbeAddress, MetricsAddress string
	// UIAddress is where the page is served on which people watch the cluster; empty turns it off. UITokenFile has the token
	// that its readers need; empty means that they need none. UITemporalURL is the address of Temporal's web UI, to which the
	// page links.
	UIAddress, UITokenFile, UITemporalURL string
	// EnableProfiling serves /debug/pprof/ beside /metrics.
	EnableProfiling bool
	// BatchIdle and BatchMost are the window in which pending pods are collected.
	BatchIdle, BatchMost time.Duration
	// MinValues is Strict or BestEffort.
	MinValues string
	// Preferences is Respect or Ignore.
	Preferences string
	// NodePrice is what a node costs in addition to its machine and its volumes, in US dollars per hour.
	NodePrice float64
	// Packing is cheapest or spread, for NodePools that do not set it themselves.
	Packing string
	// FeatureGates are Karpenter's.
	FeatureGates FeatureGates
	// LeaseName, LeaseNamespace and Identity say who acts on the cluster.
	LeaseName, LeaseNamespace, Identity string
	// BuildID is the build's name as a version of the cluster's Worker Deployment.
	BuildID string
	// SweepEvery is how often cloud, cluster and workflows are compared while any of them changes; otherwise it is a fifth as
	// often.
	SweepEvery time.Duration
	// SweepMost is the share of the nodes that one sweep may end, but never fewer than three nodes; 1 lets it end all of
	// them.
	SweepMost float64
	// KubeQPS and KubeBurst bound requests to the API server, per second and at once.
	KubeQPS   float32
	KubeBurst int
	// MemoryLimit is the limit of the worker's container; zero means that it has none.
	MemoryLimit resource.QuantityValue
	// Rebalance is what EC2's recommendation to rebalance a spot instance leads to: ignore or replace.
	Rebalance string
	// DisruptionRate limits how many nodes of the cluster begin to be disrupted within a period, such as 10%/10m; empty
	// means no limit.
	DisruptionRate string
	// PrometheusURL is where Prometheus answers the queries of rollouts; empty where it is not known.
	PrometheusURL string
	// DisruptionBudgets is a JSON list like spec.disruption.budgets of a NodePool: how many nodes of the cluster may be disrupted
	// at once; empty means no limit.
	DisruptionBudgets string
	// MaintenanceWindows is a JSON list of the times in which nodes may be removed (karpv1.MaintenanceWindow), for NodePools
	// that have none of their own; empty means that no removal waits for one.
	MaintenanceWindows string
	// Observe has the worker only say what it would do. It takes no Lease, so that another controller can go on.
	Observe bool
	// Nomination has the kube-scheduler told for which node a pod was planned.
	Nomination bool
	// HookURLs are the beginnings of the addresses that hooks of NodePools may call, and HookJobNamespaces the namespaces in
	// which they may run Jobs.
	HookURLs, HookJobNamespaces []string
	// OTLPEndpoint is where traces go by OTLP; empty means OpenTelemetry's own variables, and without those nowhere.
	// TraceSampling is the share of nodes that are traced.
	OTLPEndpoint  string
	TraceSampling float64
	// LogFormat is json or console. LogLevel is debug, info, warn or error, or a list of levels by component.
	LogFormat, LogLevel string
}

// The values of Config.Rebalance.
const (
	rebalanceIgnore  = "ignore"
	rebalanceReplace = "replace"
)

// DefaultConfig returns the configuration of a worker for which only the cluster's name is set.
func DefaultConfig() Config {
	return Config{
		HealthProbeAddress: ":8081", MetricsAddress: ":8080",
		BatchIdle: time.Second, BatchMost: 10 * time.Second,
		MinValues: string(plan.MinValuesStrict), Preferences: string(plan.PreferencesRespect), Packing: string(plan.PackingSpread),
		LeaseName: "karpenter-leader-election", LeaseNamespace: "kube-system",
		SweepEvery: 2 * time.Minute, SweepMost: activities.SweepMost,
		KubeQPS: 200, KubeBurst: 300,
		Rebalance: rebalanceIgnore, Nomination: true, TraceSampling: 1, LogFormat: logs.JSON, LogLevel: "info",
	}
}

// Flags adds a flag for every setting, with its current value as the default.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Cluster, "cluster", c.Cluster, "name of the EKS cluster; required")
	flags.StringVar(&c.HealthProbeAddress, "health-probe-address", c.HealthProbeAddress, "address of /healthz and /readyz; empty turns them off")
	flags.StringVar(&c.MetricsAddress, "metrics-address", c.MetricsAddress, "address of /metrics; empty turns it off")
	flags.StringVar(&c.UIAddress, "ui-address", c.UIAddress, "address of the page on which people watch the cluster, such as :8090; it can only be read (default: none)")
	flags.StringVar(&c.UITokenFile, "ui-token-file", c.UITokenFile, "file with the token that readers of the page need; without one the page is served under addresses, localhost and names of the cluster only")
	flags.StringVar(&c.UITemporalURL, "ui-temporal-url", c.UITemporalURL, "address of Temporal's web UI, to which the page links, such as https://temporal.example.com (default: no links)")
	flags.BoolVar(&c.EnableProfiling, "enable-profiling", c.EnableProfiling, "serve Go's profiles at /debug/pprof/ beside /metrics")
	flags.DurationVar(&c.BatchIdle, "batch-idle-duration", c.BatchIdle, "plan once no further pod has become pending for this long")
	flags.DurationVar(&c.BatchMost, "batch-max-duration", c.BatchMost, "plan after this long even if pods keep coming")
	flags.StringVar(&c.MinValues, "min-values-policy", c.MinValues, "Strict or BestEffort")
	flags.StringVar(&c.Preferences, "preference-policy", c.Preferences, "Respect or Ignore what pods prefer but do not require")
	flags.Float64Var(&c.NodePrice, "node-price", c.NodePrice, "US dollars per hour (yuan in China) that a node costs in addition to its machine and its volumes")
	flags.StringVar(&c.Packing, "packing", c.Packing, "cheapest, or spread: which plan wins among those of almost equal cost; NodePools may say otherwise ("+karpv1.PackingAnnotationKey+")")
	flags.Var(&c.FeatureGates, "feature-gates", "Karpenter's feature gates NodeRepair, SpotToSpotConsolidation and NodeOverlay, and DynamicResources, which is Tenon's own")
	flags.StringVar(&c.LeaseName, "leader-election-name", c.LeaseName, "Lease that says who acts on the cluster; Karpenter's own by default, so that both never do")
	flags.StringVar(&c.LeaseNamespace, "leader-election-namespace", c.LeaseNamespace, "namespace of the Lease")
	flags.StringVar(&c.Identity, "identity", c.Identity, "holder's name in the Lease, to which tenon_ is put in front (default: POD_NAME, or host name and a random part)")
	flags.StringVar(&c.BuildID, "build-id", c.BuildID, "name by which Temporal tells builds apart (default: the program's version, and its hash where that is no release)")
	flags.DurationVar(&c.SweepEvery, "sweep-interval", c.SweepEvery, "how often cloud, cluster and workflows are compared while any of them changes; otherwise a fifth as often")
	flags.Float64Var(&c.SweepMost, "sweep-most", c.SweepMost, "share of the nodes that one sweep may end, and at least three; 1 lets it end all, also where NodeClaims have vanished at once")
	flags.StringVar(&c.Rebalance, "rebalance", c.Rebalance, "ignore EC2's recommendation to rebalance a spot instance, which only raises an Event, or replace its node")
	flags.StringVar(&c.DisruptionRate, "disruption-rate", c.DisruptionRate, "how many nodes of the cluster begin to be disrupted within a time, such as 10%/10m or 20/1h; NodePools may have their own beside it ("+karpv1.DisruptionRateAnnotationKey+")")
	flags.BoolVar(&c.Nomination, "nomination", c.Nomination, "tell the kube-scheduler for which node a pod was planned, which needs the right to patch pods/status")
	flags.StringSliceVar(&c.HookURLs, "hook-url", c.HookURLs, "beginning of addresses that hooks of NodePools may call, such as https://hooks.example.com/nodes; may be given several times, or separated by commas (default: none; "+karpv1.HooksAnnotationKey+")")
	flags.StringSliceVar(&c.HookJobNamespaces, "hook-job-namespace", c.HookJobNamespaces, "namespace in which hooks of NodePools may run Jobs; may be given several times, or separated by commas (default: none)")
	flags.StringVar(&c.DisruptionBudgets, "disruption-budgets", c.DisruptionBudgets, `how many nodes of the cluster may be disrupted at once, as JSON like a NodePool's budgets, such as [{"nodes": "10%"}, {"nodes": "1", "reasons": ["Drifted"]}]; those of NodePools hold beside them`)
	flags.StringVar(&c.MaintenanceWindows, "maintenance-windows", c.MaintenanceWindows, `when nodes may be removed, as JSON such as [{"schedule": "0 22 * * sat", "duration": "4h", "timeZone": "Europe/Zurich", "reasons": ["Drifted", "Expired"]}]; NodePools may have their own instead (`+karpv1.MaintenanceWindowsAnnotationKey+`)`)
	flags.Float32Var(&c.KubeQPS, "kube-client-qps", c.KubeQPS, "requests per second to the API server")
	flags.IntVar(&c.KubeBurst, "kube-client-burst", c.KubeBurst, "requests at once to the API server")
	flags.Var(&c.MemoryLimit, "memory-limit", "limit of the container's memory, such as 512Mi: the garbage collector keeps the heap within what the program's text leaves of it, unless GOMEMLIMIT is set, and the cache of workflows takes about 6 % of it (default: none)")
	flags.StringVar(&c.PrometheusURL, "prometheus-url", c.PrometheusURL, "address of the Prometheus that answers the queries of rollouts ("+karpv1.RolloutQueryAnnotationKey+"), such as http://prometheus.monitoring:9090 (default: none, and such rollouts wait)")
	flags.BoolVar(&c.Observe, "observe", c.Observe, "only say what would be done, in the log and in metrics, and do nothing: no Lease, no workflow, no write; a NodePool may be observed alone ("+karpv1.ObserveAnnotationKey+")")
	flags.StringVar(&c.OTLPEndpoint, "otlp-endpoint", c.OTLPEndpoint, "where to export a trace of each node to, by OTLP over HTTP, such as http://collector:4318 (default: what OTEL_EXPORTER_OTLP_ENDPOINT says, or nowhere)")
	flags.Float64Var(&c.TraceSampling, "trace-sampling", c.TraceSampling, "share of nodes that are traced, from 0 to 1")
	flags.StringVar(&c.LogFormat, "log-format", c.LogFormat, "json, or console for people")
	flags.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error, also by component, such as info,planner=debug,aws=warn; the components are "+logs.ComponentNames())
}

// Logging returns how the process logs.
func (c *Config) Logging() logs.Options { return logs.Options{Format: c.LogFormat, Levels: c.LogLevel} }

// tracing returns where traces go.
func (c *Config) tracing(version string) tracing.Options {
	return tracing.Options{Endpoint: c.OTLPEndpoint, Share: c.TraceSampling, Cluster: c.Cluster, Version: version, Instance: c.Identity}
}

// rate returns the parsed DisruptionRate; nil if it is empty.
func (c *Config) rate() (*karpv1.DisruptionRate, error) {
	if c.DisruptionRate == "" {
		return nil, nil
	}
	rate, err := karpv1.ParseDisruptionRate(c.DisruptionRate)
	return &rate, err
}

// clusterLimits are the settings that limit the disruption of nodes in the whole cluster.
type clusterLimits struct {
	rate    *karpv1.DisruptionRate
	budgets []karpv1.Budget
	windows karpv1.MaintenanceWindows
}

// limits returns the parsed DisruptionRate, DisruptionBudgets and MaintenanceWindows. An error names each flag that is wrong.
func (c *Config) limits() (all clusterLimits, err error) {
	var rate, budgets, windows error
	if all.rate, rate = c.rate(); rate != nil {
		rate = fmt.Errorf("--disruption-rate %w", rate)
	}
	if all.budgets, budgets = karpv1.ParseBudgets(c.DisruptionBudgets); budgets != nil {
		budgets = fmt.Errorf("--disruption-budgets: %w", budgets)
	}
	if all.windows, windows = karpv1.ParseMaintenanceWindows(c.MaintenanceWindows); windows != nil {
		windows = fmt.Errorf("--maintenance-windows: %w", windows)
	}
	return all, errors.Join(rate, budgets, windows)
}

var clusterName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)

var buildID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._+-]{0,127}$`)

// ValidCluster reports whether EKS allows a cluster of that name. The name becomes a part of tags, workflow ids and queries.
func ValidCluster(name string) bool { return clusterName.MatchString(name) }

// longestBatch leaves an attempt of the activity Plan half a minute for planning, in addition to the time in which it
// collects pods.
const longestBatch = 90 * time.Second

// Validate fills in unset values and returns all mistakes, each with its flag.
func (c *Config) Validate() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	check(c.Cluster != "", "--cluster (TENON_CLUSTER): name the EKS cluster")
	check(c.Cluster == "" || ValidCluster(c.Cluster), "--cluster %q: EKS names have 1 to 100 letters, digits, hyphens and underscores, and begin with a letter or digit", c.Cluster)
	check(c.BatchIdle > 0, "--batch-idle-duration %s: must be positive", c.BatchIdle)
	check(c.BatchMost >= c.BatchIdle, "--batch-max-duration %s: must not be below --batch-idle-duration %s", c.BatchMost, c.BatchIdle)
	check(c.BatchMost <= longestBatch, "--batch-max-duration %s: must not be above %s: a plan that has not ended after two minutes is begun anew", c.BatchMost, longestBatch)
	check(c.MinValues == string(plan.MinValuesStrict) || c.MinValues == string(plan.MinValuesBestEffort), "--min-values-policy %q: must be Strict or BestEffort", c.MinValues)
	check(c.Preferences == string(plan.PreferencesRespect) || c.Preferences == string(plan.PreferencesIgnore), "--preference-policy %q: must be Respect or Ignore", c.Preferences)
	check(c.NodePrice >= 0 && !math.IsInf(c.NodePrice, 1), "--node-price %v: must be US dollars per hour, such as 0.01, and not negative", c.NodePrice)
	check(plan.Packing(c.Packing).Valid(), "--packing %q: must be cheapest or spread", c.Packing)
	check(buildID.MatchString(c.BuildID), "--build-id %q: must have 1 to 128 letters, digits, dots, hyphens, underscores and plus signs, and begin with a letter or digit", c.BuildID)
	check(c.SweepEvery >= 10*time.Second, "--sweep-interval %s: must be at least 10s", c.SweepEvery)
	check(c.SweepMost > 0 && c.SweepMost <= 1, "--sweep-most %v: must be more than 0 and at most 1, such as 0.1", c.SweepMost)
	check(c.Rebalance == rebalanceIgnore || c.Rebalance == rebalanceReplace, "--rebalance %q: must be ignore or replace", c.Rebalance)
	_, err := c.limits()
	check(err == nil, "%v", err)
	address, err := url.Parse(c.PrometheusURL)
	check(c.PrometheusURL == "" || err == nil && address.Host != "" && (address.Scheme == "http" || address.Scheme == "https"), "--prometheus-url %q: must be an address such as http://prometheus.monitoring:9090", c.PrometheusURL)
	check(c.KubeQPS > 0 && c.KubeBurst > 0, "--kube-client-qps %v, --kube-client-burst %d: must be positive", c.KubeQPS, c.KubeBurst)
	check(c.MemoryLimit.IsZero() || c.MemoryLimit.Value() >= minMemory, "--memory-limit %s: must be at least %dMi", c.MemoryLimit.String(), minMemory>>20)
	logging := c.Logging().Validate()
	check(logging == nil, "%w", logging)
	traces := c.tracing("").Validate()
	check(traces == nil, "%w", traces)
	check(c.LeaseName != "" && c.LeaseNamespace != "", "--leader-election-name and --leader-election-namespace: must not be empty")
	if c.Identity == "" {
		c.Identity = os.Getenv("POD_NAME")
	}
	if c.Identity == "" {
		host, err := os.Hostname()
		check(err == nil, "--identity: the host name is not known: %v", err)
		c.Identity = host + "_" + uuid.NewString()
	}
	if !strings.HasPrefix(c.Identity, holderPrefix) {
		c.Identity = holderPrefix + c.Identity
	}
	return errors.Join(wrong...)
}
