package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
)

// Burst is a second piece of work: large and small pods arrive together in an empty cluster that is slow to boot machines
// and to bind pods. A planner that plans again while pods wait may buy machines that its first plan did without.
//
// Both rivals may buy machines of two cores only, of which 1.9 are for pods. Nodes are never consolidated (consolidateAfter:
// Never): what is bought stays.
type Burst struct {
	// Apart names what keeps large pods from sharing a node; see Aparts.
	Apart string `json:"apart"`
	// Large and Small are the numbers of pods of each kind. Small pods request 100m; large ones 700m, or 1500m where their
	// size is what keeps them apart.
	Large int `json:"large"`
	Small int `json:"small"`
	// Boot is the time from a machine's launch until its Node exists, in whole seconds.
	Boot time.Duration `json:"-"`
	// SchedulerQPS is how many requests per second the kube-scheduler may make.
	SchedulerQPS int `json:"schedulerQPS"`
}

// BurstFigures are the results of one rival's Burst.
type BurstFigures struct {
	Name string `json:"name"`
	Burst
	BootSeconds float64 `json:"bootSeconds"`
	// Needed is the number of nodes that the pods need.
	Needed int `json:"needed"`
	// FirstPlan is the number of NodeClaims when, for the first time, no new one had appeared for firstPause.
	FirstPlan int `json:"firstPlan"`
	// Peak is the largest number of NodeClaims, and Final the number of Nodes at the end.
	Peak  int `json:"peak"`
	Final int `json:"final"`
	// PricePerHour is the price of those Nodes.
	PricePerHour float64 `json:"pricePerHour"`
	// SecondsToRunning is the time from the creation of the pods until all of them ran.
	SecondsToRunning float64 `json:"secondsToRunning"`
}

const (
	// firstPause is longer than either rival waits between the claims of one plan, and than Tenon waits for the end of a
	// burst.
	firstPause = 2 * time.Second
	// burstOver is how long nodes are counted once all pods run.
	burstOver = 30 * time.Second
	// burstTick is how often nodes are counted.
	burstTick = 250 * time.Millisecond
	// burstCores is how many cores the machines have.
	burstCores = 2
)

// nodeMilliCPU is what a machine offers pods, smallMilliCPU what a small pod requests. Memory is never scarce.
const nodeMilliCPU, smallMilliCPU = 1000*burstCores - reservedMilliCPU, 100

// apart is a way to keep large pods apart.
type apart struct {
	// milliCPU is what each large pod requests.
	milliCPU int
	// shared says that two of them may share a node nevertheless.
	shared bool
	// pod and container are additional lines of a pod's spec and of its container.
	pod, container string
}

var aparts = map[string]apart{
	"anti-affinity": {milliCPU: 700, pod: "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
		"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: large}}}]}}"},
	"spread": {milliCPU: 700, shared: true, pod: "topologySpreadConstraints: " +
		"[{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: large}}}]"},
	"host-port": {milliCPU: 700, container: "ports: [{containerPort: 8080, hostPort: 8080}]"},
	"size":      {milliCPU: 1500},
}

// Aparts returns the names of the ways to keep large pods apart.
func Aparts() []string { return slices.Sorted(maps.Keys(aparts)) }

// needed returns the number of nodes that the pods need.
func (b Burst) needed() int {
	a := aparts[b.Apart]
	if a.shared {
		return ceil(b.Large*a.milliCPU+b.Small*smallMilliCPU, nodeMilliCPU)
	}
	beside := b.Large * ((nodeMilliCPU - a.milliCPU) / smallMilliCPU)
	return b.Large + ceil(max(0, b.Small-beside), nodeMilliCPU/smallMilliCPU)
}

func ceil(a, b int) int { return (a + b - 1) / b }

// RunBurst lets the named rival do the work.
func RunBurst(ctx context.Context, o Options, b Burst, name string) (BurstFigures, error) {
	figures := BurstFigures{Name: name, Burst: b, BootSeconds: b.Boot.Seconds()}
	if _, known := aparts[b.Apart]; !known {
		return figures, fmt.Errorf("nothing called %q keeps pods apart, only one of %v", b.Apart, Aparts())
	}
	figures.Needed = b.needed()
	sizes, err := catalogue(ctx)
	if err != nil {
		return figures, err
	}
	bursting := setting{boot: b.Boot, schedulerQPS: b.SchedulerQPS, pool: func(group, kind string) string { return burstPool(group, kind, sizes) }}
	err = turn(ctx, o, name, sizes, bursting, func(_ rival, c client.Client, book *ledger) error {
		w := burstWork{options: o, client: c, book: book, figures: &figures}
		err := w.do(ctx)
		if err == nil && o.Keep != "" {
			err = writeJSON(filepath.Join(o.Keep, "burst-"+name+".json"), w.course)
		}
		return err
	})
	return figures, err
}

// burstWork is one rival's run.
type burstWork struct {
	options Options
	client  client.Client
	book    *ledger
	figures *BurstFigures
	course  []burstPoint
}

// burstPoint is the state at one moment.
type burstPoint struct {
	Seconds float64 `json:"seconds"`
	Claims  int     `json:"claims"`
	Nodes   int     `json:"nodes"`
	Running int     `json:"running"`
}

// do creates the pods, and counts nodes until all pods have run for a while.
func (w *burstWork) do(ctx context.Context) error {
	f, begin := w.figures, time.Now()
	if err := apply(ctx, w.client, burstPods(f.Burst)); err != nil {
		return err
	}
	last, grew, said := 0, begin, begin
	for {
		if err := sleep(ctx, burstTick); err != nil {
			return err
		}
		var claims karpv1.NodeClaimList
		if err := w.client.List(ctx, &claims); err != nil {
			return err
		}
		r, err := w.book.read()
		if err != nil {
			return err
		}
		now, count := time.Now(), len(claims.Items)
		w.course = append(w.course, burstPoint{now.Sub(begin).Seconds(), count, r.nodes, r.running})
		if count > last {
			grew = now
		}
		last, f.Peak = count, max(f.Peak, count)
		if f.FirstPlan == 0 && count > 0 && now.Sub(grew) >= firstPause {
			f.FirstPlan = count
		}
		if f.SecondsToRunning == 0 && r.running == f.Large+f.Small {
			f.SecondsToRunning = now.Sub(begin).Seconds()
		}
		if now.Sub(said) > 30*time.Second {
			said = now
			w.options.Progress("%s: after %.0f s %d claims, %d nodes, %d of %d pods run", f.Name, now.Sub(begin).Seconds(), count, r.nodes, r.running, f.Large+f.Small)
		}
		if f.SecondsToRunning > 0 && now.Sub(begin).Seconds() > f.SecondsToRunning+burstOver.Seconds() {
			f.Final, f.PricePerHour = r.nodes, r.usd
			return nil
		}
		if now.Sub(begin) > w.options.Limit {
			return fmt.Errorf("not all Running within %s: %d of %d pods run on %d nodes, %d claims, %d at most, %d at first",
				w.options.Limit, r.running, f.Large+f.Small, r.nodes, count, f.Peak, f.FirstPlan)
		}
	}
}

// burstPool returns the NodePool of the burst.
func burstPool(group, kind string, sizes []size) string {
	var names []string
	for _, s := range sizes {
		if s.cores == burstCores {
			names = append(names, s.name)
		}
	}
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
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
      nodeClassRef: {group: %s, kind: %s, name: fleet}
      expireAfter: Never
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}
`), lab.SimulatedNodeLabel, strings.Join(names, ", "), group, kind)
}

// burstPods returns the pods of the burst.
func burstPods(b Burst) string {
	a := aparts[b.Apart]
	large := deployment("large", b.Large, fmt.Sprintf("cpu: %dm, memory: 512Mi", a.milliCPU))
	if a.container != "" {
		large = strings.Replace(large, "image: app,", "image: app, "+a.container+",", 1)
	}
	if a.pod != "" {
		large += "\n      " + a.pod
	}
	return large + "\n---\n" + deployment("small", b.Small, fmt.Sprintf("cpu: %dm, memory: 100Mi", smallMilliCPU))
}
