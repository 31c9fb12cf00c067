// Package e2e lets Tenon and Karpenter do the same work, one after the other, each in its own laboratory. The
// laboratories are alike: a real control plane, kwok instead of kubelets, one price list.
//
// # The work
//
// Five hundred small and five hundred large pods arrive in an empty cluster. When all of them run, 150 of each kind are
// removed; everything that happens from then on is consolidation. The work is over when the bill has not changed for a while
// (Options.Quiet).
//
// # What is alike
//
// The machines are those of Karpenter's kwok provider: its sizes, its reservations for the kubelet and its on-demand prices.
// Tenon buys them from its simulated EC2, which throttles launches as EC2 does. A machine boots for two seconds. The
// NodePools are identical except for the node class.
//
// # What is measured
//
// A watcher that belongs to neither rival measures. The bill is the sum of the price list over the existing Nodes, with and
// without the nodes' root volumes. A pod has moved if a replacement was created for it after the scaling down, which itself
// creates none. Memory and CPU time are the kernel's figures for the process that decides. Tenon also needs a Temporal
// server, which may serve many clusters; its CPU time and memory are reported separately. Both rivals are watched for the
// same quiet time.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
)

// setting is what a piece of work requires of the laboratory and of both rivals.
type setting struct {
	// boot is the time from a machine's launch until its Node exists.
	boot time.Duration
	// schedulerQPS is how many requests per second the kube-scheduler may make; zero leaves it to the laboratory.
	schedulerQPS int
	// pool returns the NodePool of both, identical except for the node class.
	pool func(group, kind string) string
}

// rootVolume is what a node costs beside its machine, in US dollars per hour: 20 GiB of gp3 at $0.08 per GiB and month.
const rootVolume = 20 * 0.08 / 730

// The pods of each kind before and after the scaling down.
const (
	podsBefore = 500
	podsAfter  = 350
)

// Options say how to run.
type Options struct {
	// Bin is the directory that holds the laboratory's programs.
	Bin string
	// Quiet is how long the bill must stay the same to be final. Karpenter looks again after five minutes at the latest.
	Quiet time.Duration
	// Limit is how long each rival may take to settle.
	Limit time.Duration
	// Progress receives one line per event worth reporting.
	Progress func(format string, values ...any)
	// Keep is the directory for logs and the course of the bill; with none, nothing is kept.
	Keep string
}

// Figures are the results of one rival.
type Figures struct {
	Name string `json:"name"`
	// PricePerHourBefore and NodesBefore are from the moment before the pods are removed.
	PricePerHourBefore float64 `json:"pricePerHourBefore"`
	NodesBefore        int     `json:"nodesBefore"`
	SecondsToRunning   float64 `json:"secondsToRunning"`
	FinalPricePerHour  float64 `json:"finalPricePerHour"`
	// WholePriceBefore and FinalWholePrice are the same prices including each node's root volume.
	WholePriceBefore float64 `json:"wholePricePerHourBefore"`
	FinalWholePrice  float64 `json:"finalWholePricePerHour"`
	// QuietSeconds is how long the bill had to stay the same to be final.
	QuietSeconds float64 `json:"quietSeconds"`
	NodesFinal   int     `json:"nodesFinal"`
	NodesCreated int     `json:"nodesCreated"`
	// SecondsToFinal is the time from the scaling down to the last change of the bill.
	SecondsToFinal float64 `json:"secondsToFinal"`
	// SecondsTo90Percent is the time after which nine tenths of the saving are reached for good.
	SecondsTo90Percent float64 `json:"secondsTo90Percent"`
	PodsMoved          int     `json:"podsMoved"`
	PodsEvicted        int     `json:"podsEvicted"`
	PeakRSSBytes       int64   `json:"peakRSSBytes"`
	// CPUSeconds is the CPU time of the process that decides, from the scaling down to the last change of the bill;
	// CPUSecondsBefore is its CPU time before the scaling down.
	CPUSeconds         float64 `json:"cpuSeconds"`
	CPUSecondsBefore   float64 `json:"cpuSecondsBefore"`
	TemporalCPUSeconds float64 `json:"temporalCpuSeconds,omitempty"`
	// TemporalPeakRSSBytes is the peak memory of the Temporal server.
	TemporalPeakRSSBytes int64 `json:"temporalPeakRSSBytes,omitempty"`
}

// rival is Tenon or Karpenter.
type rival interface {
	name() string
	build(ctx context.Context, dir string, sizes []size) error
	// options are those of the laboratory.
	options(setting) lab.Options
	start(ctx context.Context, l *lab.Lab, c client.Client, s setting) error
	processes() (map[string]int, error)
	stop()
}

// Run lets the named rivals, "karpenter" and "tenon", do the work.
func Run(ctx context.Context, o Options, names ...string) ([]Figures, error) {
	sizes, err := catalogue(ctx)
	if err != nil {
		return nil, err
	}
	var all []Figures
	for _, name := range names {
		figures := Figures{Name: "end-to-end-" + name}
		consolidating := setting{boot: 2 * time.Second, pool: consolidatingPool}
		if err := turn(ctx, o, name, sizes, consolidating, func(r rival, c client.Client, book *ledger) error {
			w := &work{options: o, rival: r, client: c, book: book, sizes: sizes, figures: figures}
			err := w.do(ctx)
			if err == nil && o.Keep != "" {
				err = writeJSON(filepath.Join(o.Keep, "course-"+r.name()+".json"), w.course)
			}
			figures = w.figures
			return err
		}); err != nil {
			return nil, err
		}
		all = append(all, figures)
	}
	return all, nil
}

// turn lets one rival do a piece of work in a laboratory of its own.
func turn(ctx context.Context, o Options, name string, sizes []size, s setting, do func(rival, client.Client, *ledger) error) (err error) {
	r, known := map[string]rival{"karpenter": &karpenter{}, "tenon": &tenon{}}[name]
	if !known {
		return fmt.Errorf("there is no %q", name)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	dir, err := os.MkdirTemp("", "tenon-e2e-")
	if err != nil {
		return err
	}
	defer func() {
		if o.Keep == "" && err == nil {
			_ = os.RemoveAll(dir)
			return
		}
		o.Progress("%s: logs are in %s", r.name(), filepath.Join(dir, "logs"))
	}()
	o.Progress("%s: building", r.name())
	if err := r.build(ctx, dir, sizes); err != nil {
		return err
	}
	options := r.options(s)
	options.Dir, options.Bin, options.SchedulerQPS = dir, o.Bin, s.schedulerQPS
	l, err := lab.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	defer r.stop()
	config, err := l.RESTConfig()
	if err != nil {
		return err
	}
	kinds, err := scheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: kinds})
	if err != nil {
		return err
	}
	if err := r.start(ctx, l, c, s); err != nil {
		return err
	}
	book, err := newLedger(config, prices(sizes))
	if err != nil {
		return err
	}
	defer book.close()
	return do(r, c, book)
}

// scheme returns the types that a comparison reads and writes; everything else is applied as written.
func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(clientscheme.AddToScheme, apiextensionsv1.AddToScheme, karpv1.AddToScheme)
	return s, kinds.AddToScheme(s)
}

// consolidatingPool returns the NodePool of the work.
func consolidatingPool(group, kind string) string {
	return fmt.Sprintf(strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: fleet}
spec:
  template:
    metadata:
      labels: {%s: "true"}
    spec:
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      nodeClassRef: {group: %s, kind: %s, name: fleet}
      expireAfter: Never
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 30s
    budgets: [{nodes: "100%%"}]
`), lab.SimulatedNodeLabel, group, kind)
}

// deployment returns a Deployment of pods of one size.
func deployment(name string, replicas int, requests string) string {
	return fmt.Sprintf(strings.TrimSpace(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: default, name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: app, image: app, resources: {requests: {%[3]s}}}
`), name, replicas, requests)
}

// deployments returns the pods of the work.
func deployments(each int) string {
	return deployment("small", each, "cpu: 900m, memory: 3100Mi") + "\n---\n" + deployment("large", each, "cpu: 3500m, memory: 28Gi")
}

func compile(ctx context.Context, dir, program, what string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, what)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", what, err, out)
	}
	return nil
}

// listNodes returns all Nodes.
func listNodes(ctx context.Context, c client.Client) ([]corev1.Node, error) {
	var list corev1.NodeList
	err := c.List(ctx, &list)
	return list.Items, err
}
