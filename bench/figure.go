package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/byhand"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/tenon"
)

// figure holds the results for one question. Prices are in US dollars per hour; what was not asked or does not apply is
// zero.
type figure struct {
	Name string `json:"name"`
	// Capacity says what the pools may buy: on-demand only, or spot as well.
	Capacity string `json:"capacity"`
	Pods     int    `json:"pods"`
	// Nodes is the number of existing nodes.
	Nodes int `json:"nodes,omitempty"`
	// Impossible says that some pods fit nowhere by design.
	Impossible bool `json:"impossible,omitempty"`

	// Bound is a price that no plan can undercut. It is zero if there are existing nodes: bounds are about new machines
	// alone.
	Bound        float64 `json:"bound,omitempty"`
	BoundSeconds float64 `json:"boundSeconds,omitempty"`

	Tenon made `json:"tenon"`
	// NotNominated is Tenon's plan when the kube-scheduler is not told which node a pod was planned for.
	NotNominated made `json:"tenonNotNominated"`
	// Unlimited is what Tenon's plan costs without the pools' limits, if they have any that matter.
	Unlimited float64 `json:"tenonUnlimited,omitempty"`
	// PeakMiB is how much the process grows while Tenon plans.
	PeakMiB float64 `json:"tenonPeakMiB"`
	// Slowdown is the fraction by which the pods that fit nowhere slow down the planning of the others, in processor time,
	// if there are any.
	Slowdown *float64 `json:"tenonSlowdown,omitempty"`

	Karpenter *made `json:"karpenter,omitempty"`
	// KarpenterNotAsked says why there is no answer from Karpenter.
	KarpenterNotAsked string `json:"karpenterNotAsked,omitempty"`

	FirstFit      float64 `json:"firstFit,omitempty"`
	FirstFitNodes int     `json:"firstFitNodes,omitempty"`
	OneType       float64 `json:"oneType,omitempty"`
	OneTypeName   string  `json:"oneTypeName,omitempty"`
}

// maxKarpenterNodes limits the nodes of the clusters that Karpenter is asked about: its test client takes gigabytes for more.
const maxKarpenterNodes = 5000

// made describes a plan in numbers.
type made struct {
	Cost              float64 `json:"cost"`
	Nodes             int     `json:"nodes"`
	Unplaced          int     `json:"unplaced"`
	Seconds           float64 `json:"seconds"`
	AllocationsPerPod float64 `json:"allocationsPerPod"`
}

func madeOf(a compare.Answer, pods int) made {
	return made{Cost: a.Cost(), Nodes: len(a.Machines), Unplaced: len(a.Unplaced), Seconds: seconds(a.Took), AllocationsPerPod: float64(a.Mallocs) / float64(pods)}
}

func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }

// compare asks all planners.
func askBoth(ctx context.Context, q question, limits karpenterLimits) (figure, error) {
	asked := q.ask()
	f := figure{Name: q.name, Capacity: capacityOf(asked), Pods: len(asked.Pods), Nodes: len(asked.Nodes), Impossible: q.good != nil}
	progress("%s: %d pods", q.name, f.Pods)
	if err := f.askTenon(asked); err != nil {
		return f, err
	}
	if q.good != nil {
		slowdown, err := tenon.Slowdown(asked, q.good())
		if err != nil {
			return f, err
		}
		f.Slowdown = &slowdown
	}
	f.bound(asked)
	switch {
	case q.again:
		f.KarpenterNotAsked = "another draw of a batch before"
	case q.tenonOnly || f.Nodes > maxKarpenterNodes:
		f.KarpenterNotAsked = "too large for it"
	case f.Pods > limits.pods:
		f.KarpenterNotAsked = fmt.Sprintf("more than %d pods", limits.pods)
	default:
		return f, f.askKarpenter(ctx, asked, limits.time)
	}
	return f, nil
}

// askTenon plans with and without nomination, and without limits if they matter.
func (f *figure) askTenon(asked *compare.Question) error {
	peak, err := tenon.Peak(asked)
	if err != nil {
		return err
	}
	f.PeakMiB = float64(peak) / (1 << 20)
	told := tenon.Median(asked)
	untold := *asked
	untold.NotNominated = true
	other := tenon.Plan(&untold)
	for _, a := range []compare.Answer{told, other} {
		if wrong := asked.Missing(a); len(wrong) > 0 {
			return fmt.Errorf("the plan forgets pods: %v", wrong[0])
		}
	}
	f.Tenon, f.NotNominated = madeOf(told, f.Pods), madeOf(other, f.Pods)
	if free, limited := withoutLimits(asked); limited {
		f.Unlimited = tenon.Plan(free).Cost()
	}
	progress("%s: Tenon %.3f s, $%.3f/h, %d nodes, %d unplaced; not nominated $%.3f/h, %d nodes", f.Name, f.Tenon.Seconds, f.Tenon.Cost, f.Tenon.Nodes, f.Tenon.Unplaced, f.NotNominated.Cost, f.NotNominated.Nodes)
	return nil
}

// bound fills machines by hand, and computes the price that no plan can undercut.
func (f *figure) bound(asked *compare.Question) {
	hand, ok := byhand.Price(asked)
	if ok {
		f.FirstFit, f.FirstFitNodes, f.OneType, f.OneTypeName = hand.FirstFit, hand.Nodes, hand.OneType, hand.Type
	}
	if len(asked.Nodes) > 0 {
		return
	}
	start := time.Now()
	f.Bound = max(tenon.Bound(asked), hand.Bound)
	f.BoundSeconds = seconds(time.Since(start))
	progress("%s: bound $%.3f/h (%.1f s), by hand $%.3f/h", f.Name, f.Bound, f.BoundSeconds, hand.Least())
}

// askKarpenter asks Karpenter, up to a time limit.
func (f *figure) askKarpenter(ctx context.Context, asked *compare.Question, limit time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	theirs, err := karpenter.Plan(ctx, asked)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.KarpenterNotAsked = fmt.Sprintf("no answer in %v", limit)
		return nil
	case err != nil:
		return err
	}
	karpenters := madeOf(theirs, f.Pods)
	f.Karpenter = &karpenters
	progress("%s: Karpenter %.3f s, $%.3f/h, %d nodes, %d unplaced", f.Name, karpenters.Seconds, karpenters.Cost, karpenters.Nodes, karpenters.Unplaced)
	return nil
}

// capacityOf returns spot if some pool may buy it, and on-demand otherwise.
func capacityOf(q *compare.Question) string {
	for _, pool := range q.Pools {
		restricted := false
		for _, r := range pool.Spec.Template.Spec.Requirements {
			if r.Key == karpv1.CapacityTypeLabelKey {
				restricted = !slices.Contains(r.Values, karpv1.CapacityTypeSpot)
			}
		}
		if !restricted {
			return karpv1.CapacityTypeSpot
		}
	}
	return karpv1.CapacityTypeOnDemand
}

// withoutLimits returns the question without the pools' limits, and whether a batch could reach them.
func withoutLimits(q *compare.Question) (free *compare.Question, limited bool) {
	copied := *q
	copied.Pools = nil
	for _, pool := range q.Pools {
		limited = limited || reachable(pool.Spec.Limits)
		pool = pool.DeepCopy()
		pool.Spec.Limits = nil
		copied.Pools = append(copied.Pools, pool)
	}
	return &copied, limited
}

// reachable reports whether limits may matter: those of Karpenter's benchmark are millions of cores.
func reachable(limits karpv1.Limits) bool {
	cores, ok := limits[corev1.ResourceCPU]
	return len(limits) > 0 && (!ok || cores.Value() < 1_000_000)
}
