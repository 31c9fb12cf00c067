// Package tenon puts a question to plan.Pack, or to plan.Disrupt.
package tenon

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// Input reduces the question to what Pack reads, as the mirror of a cluster does when objects arrive. It shares nothing with
// any other input.
func Input(q *compare.Question) plan.Input {
	intern := new(plan.Interner)
	snapshot := &plan.Snapshot{
		Time: cmp.Or(q.At, moment), Pending: make([]*plan.Pod, len(q.Pods)), Namespaces: map[string]map[string]string{}, Storage: storage(intern, q), LabelKeys: nodeclass.Labels()}
	for _, namespace := range q.Namespaces {
		snapshot.Namespaces[namespace.Name] = intern.Labels(namespace.Labels)
	}
	limits := map[string]map[string]int{}
	for _, node := range q.CSINodes {
		limits[node.Name] = intern.AttachLimits(node)
	}
	for i, pod := range q.Pods {
		snapshot.Pending[i] = intern.Pod(pod)
		snapshot.Pending[i].Unschedulable = true
	}
	for i := range q.Nodes {
		n := &q.Nodes[i]
		node := intern.Node(n.Node)
		node.AttachLimits = limits[n.Node.Name]
		if n.Claim != nil {
			node = intern.Claim(n.Claim).Join(node)
		}
		pods := make([]*plan.Pod, len(n.Pods))
		for k, pod := range n.Pods {
			pods[k] = intern.Pod(pod)
		}
		slices.SortFunc(pods, func(a, b *plan.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
		snapshot.Nodes = append(snapshot.Nodes, node.WithPods(pods))
	}
	for _, budget := range q.Budgets {
		snapshot.DisruptionBudgets = append(snapshot.DisruptionBudgets, intern.DisruptionBudget(budget))
	}
	for _, set := range q.DaemonSets {
		snapshot.DaemonSets = append(snapshot.DaemonSets, intern.DaemonSet(set))
	}
	in := plan.Input{Snapshot: snapshot, Nominates: !q.NotNominated}
	if q.IgnorePreferences {
		in.Preferences = plan.PreferencesIgnore
	}
	for _, pool := range q.Pools {
		snapshot.NodePools = append(snapshot.NodePools, pool)
		in.Pools = append(in.Pools, plan.Pool{NodePool: pool, Types: q.Types[pool.Name], Packing: plan.PackingSpread.For(pool)})
	}
	if q.BestEffortMinValues {
		in.MinValues = plan.MinValuesBestEffort
	}
	return in
}

// storage reduces the volumes.
func storage(intern *plan.Interner, q *compare.Question) plan.Storage {
	s := plan.Storage{
		Claims: map[string]*plan.VolumeClaim{}, Volumes: map[string]*plan.Volume{}, Classes: map[string]*plan.StorageClass{}}
	for _, claim := range q.Claims {
		reduced := intern.VolumeClaim(claim)
		s.Claims[reduced.Key()] = reduced
	}
	for _, volume := range q.Volumes {
		s.Volumes[volume.Name] = intern.Volume(volume)
	}
	for _, class := range q.StorageClasses {
		s.Classes[class.Name] = intern.StorageClass(class)
	}
	return s
}

// moment is the time of all questions that set none.
var moment = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Plan asks Pack. Only Pack itself is timed.
func Plan(q *compare.Question) compare.Answer {
	in := Input(q)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	packed := plan.Pack(in)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	answer := read(q, packed)
	answer.Took, answer.Mallocs = took, after.Mallocs-before.Mallocs
	return answer
}

// PlanWithout asks Pack with a strategy left out, and returns the CPU time it took.
func PlanWithout(q *compare.Question, strategy string) (compare.Answer, time.Duration) {
	in := Input(q)
	in.Without = strategy
	runtime.GC()
	used := compare.CPU()
	packed := plan.Pack(in)
	return read(q, packed), compare.CPU() - used
}

// read translates a plan.
func read(q *compare.Question, p plan.Plan) compare.Answer {
	keys := make(map[types.UID]string, len(q.Pods))
	for _, pod := range q.Pods {
		keys[pod.UID] = compare.Key(pod)
	}
	answer := compare.Answer{Existing: map[string]string{}, Unplaced: map[string]string{}}
	for i := range p.Claims {
		claim := &p.Claims[i]
		m := machine(claim)
		for _, uid := range claim.Pods {
			m.Pods = append(m.Pods, keys[uid])
		}
		answer.Machines = append(answer.Machines, m)
	}
	for _, placement := range p.Placements {
		answer.Existing[placement.Pod.Key()] = placement.Node
	}
	for _, unplaced := range p.Unplaced {
		var reasons []string
		for _, reason := range unplaced.Reasons {
			reasons = append(reasons, strings.TrimPrefix(reason.NodePool+": "+reason.Message, ": "))
		}
		answer.Unplaced[unplaced.Pod.Key()] = strings.Join(reasons, "; ")
	}
	return answer
}

// machine converts a claim without its pods.
func machine(claim *plan.Claim) compare.Machine {
	return compare.Machine{
		Pool: claim.NodePool, Types: claim.InstanceTypes, Zones: claim.Zones,
		CapacityTypes: []string{claim.CapacityType}, Price: claim.PricePerHour,
	}
}

// Bound returns a price that no plan can undercut, in US dollars per hour.
func Bound(q *compare.Question) float64 { return plan.LowerBound(Input(q)) }

// Median repeats the question for a second, and up to three times as long as ten seconds have not passed. It returns the
// answer with the median time.
func Median(q *compare.Question) compare.Answer {
	var times []time.Duration
	var answer compare.Answer
	for start := time.Now(); len(times) == 0 || time.Since(start) < time.Second || len(times) < 3 && time.Since(start) < 10*time.Second; {
		answer = Plan(q)
		times = append(times, answer.Took)
	}
	slices.Sort(times)
	answer.Took = times[len(times)/2]
	return answer
}

// Slowdown returns the fraction by which one question takes longer than another, such as with and without pods that fit
// nowhere: 0.1 for a tenth. It asks both alternately, and compares the least processor time of each, so that other load on
// the machine matters little.
func Slowdown(with, without *compare.Question) (float64, error) {
	const turns = 9
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	least := [...]time.Duration{math.MaxInt64, math.MaxInt64}
	for range turns {
		for i, q := range [...]*compare.Question{with, without} {
			in := Input(q)
			runtime.GC()
			before, err := processorTime()
			if err != nil {
				return 0, err
			}
			plan.Pack(in)
			after, err := processorTime()
			if err != nil {
				return 0, err
			}
			least[i] = min(least[i], after-before)
		}
	}
	return float64(least[0])/float64(least[1]) - 1, nil
}

// processorTime returns what this process has used so far, on all cores, garbage collection included.
func processorTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("asking for the processor time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
