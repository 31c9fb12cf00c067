package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// lookEvery spaces the looks at drains that are blocked while something changes all the time.
	lookEvery = 500 * time.Millisecond
	// wakeAgain and wakeMost space the signals to a drain whose pods could be evicted by what the cluster shows and are not:
	// something refuses them that it does not show, such as a webhook.
	wakeAgain, wakeMost = time.Minute, 30 * time.Minute
	// takesFor is how long a drain that was woken has to take what its budgets allow, before another one may.
	takesFor = 5 * time.Second
)

// blockedDrains is what the drains that wait were last told, by the UID of their nodes.
type blockedDrains map[types.UID]*blockedDrain

type blockedDrain struct {
	// left is how many pods had to go, free which could when the drain was told, and woken when that was; zero for never.
	left  int
	free  []string
	woken time.Time
	// opened says that it was told that somebody has opened its node.
	opened bool
	// pause is how long it is not told the same again.
	pause time.Duration
}

// WakeBlockedDrains wakes drains that wait because something holds their pods, when it may hold them no longer. It is a part
// of Run, for those who only drain.
func (s *Starter) WakeBlockedDrains(ctx context.Context) error {
	events := s.Mirror.Subscribe(cluster.BudgetsChanged, cluster.PodsChanged, cluster.NodeChanged)
	defer events.Close()
	told := blockedDrains{}
	for {
		wait := s.wakeBlocked(ctx, told, time.Now())
		seen := awaitEvents(ctx, events, wait)
		if err := sleep(ctx, lookEvery); err != nil {
			return err
		}
		s.tellGone(ctx, slices.Concat(seen, events.Take()))
	}
}

// tellGone tells drains whose node is gone: one that waits would not see it. Most nodes go with their drain, which costs no
// more than a question then.
func (s *Starter) tellGone(ctx context.Context, seen []cluster.Event) {
	for _, event := range seen {
		if event.Kind != cluster.NodeChanged || s.Mirror.Node(event.Name) != nil {
			continue
		}
		if err := s.notify(ctx, event.Name, workflows.DrainWaiter{Gone: true}); err != nil {
			s.Log.Warn("could not tell a drain that its node is gone; the sweep will", zap.String("node", event.Name), zap.Error(err))
		}
	}
}

// wakeBlocked wakes the drains that may go on, those that wait longest first, and no more than their budgets allow pods to
// go. It returns when to look again although nothing has changed; zero for never.
func (s *Starter) wakeBlocked(ctx context.Context, told blockedDrains, now time.Time) (wait time.Duration) {
	var nodes []*corev1.Node
	waiting := map[types.UID]bool{}
	for _, node := range s.Mirror.Nodes() {
		if node.Annotations[karpv1.DrainBlockedAnnotationKey] != "" {
			nodes, waiting[node.UID] = append(nodes, node), true
		}
	}
	maps.DeleteFunc(told, func(uid types.UID, _ *blockedDrain) bool { return !waiting[uid] })
	if len(nodes) == 0 {
		return 0
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		return cmp.Or(strings.Compare(a.Annotations[karpv1.DrainBlockedAnnotationKey], b.Annotations[karpv1.DrainBlockedAnnotationKey]), strings.Compare(a.Name, b.Name))
	})
	budgets := newAllowances(s.Mirror.Snapshot().DisruptionBudgets)
	sooner := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = d
		}
	}
	for _, node := range nodes {
		free, takes, left := budgets.freePods(s.Mirror.PodsOnNode(node.Name), now)
		due, again := told.due(node.UID, free, left, opened(node), now)
		if due {
			if err := s.notify(ctx, node.Name, workflows.DrainWaiter{NodeUID: string(node.UID), Wake: true}); err != nil {
				s.Log.Warn("could not wake a drain", zap.String("node", node.Name), zap.Error(err))
				delete(told, node.UID)
			}
		}
		if again > 0 {
			sooner(again)
		}
		if last := told[node.UID]; last == nil || now.Sub(last.woken) < takesFor {
			budgets.take(takes)
			sooner(takesFor)
		}
	}
	return wait
}

// due says whether a drain is to be woken now, and otherwise when to ask again although nothing has changed; zero for never.
// It is woken when pods are gone, when others than before could go, when somebody has opened its node, and after a pause when
// the same is still so. One that is seen for the first time has just looked itself, unless pods are free.
func (b blockedDrains) due(node types.UID, free []string, left int, opened bool, now time.Time) (bool, time.Duration) {
	last := b[node]
	if last == nil {
		last = &blockedDrain{left: left}
		b[node] = last
	}
	goesOn := len(free) > 0 || left == 0
	news := left < last.left || goesOn && !slices.Equal(free, last.free) || opened && !last.opened
	rest := last.woken.Add(takesFor).Sub(now)
	if !news {
		rest = last.woken.Add(last.pause).Sub(now)
	}
	switch {
	case !goesOn && !opened && !news:
		last.left, last.opened = left, false
		return false, 0
	case rest > 0:
		return false, rest
	case news:
		last.pause = wakeAgain
	default:
		last.pause = min(2*last.pause, wakeMost)
	}
	last.left, last.free, last.opened, last.woken = left, free, opened, now
	return true, 0
}

// opened reports whether somebody has taken the taint off a node of a claim that drains: only a pass puts it back.
func opened(node *corev1.Node) bool {
	return node.Labels[karpv1.NodePoolLabelKey] != "" && !disrupted(node)
}

// allowances are the budgets of a look by namespace, and how many pods each still lets go.
type allowances struct {
	budgets map[string][]*plan.DisruptionBudget
	allows  map[*plan.DisruptionBudget]int32
}

func newAllowances(budgets []*plan.DisruptionBudget) allowances {
	a := allowances{budgets: map[string][]*plan.DisruptionBudget{}, allows: map[*plan.DisruptionBudget]int32{}}
	for _, budget := range budgets {
		a.budgets[budget.Namespace] = append(a.budgets[budget.Namespace], budget)
		a.allows[budget] = budget.Allows
	}
	return a
}

// freePods are those of a node's pods that could be evicted now by what the cluster shows, by UID, what they would take of
// their budgets, and how many pods are left that have to go. Pods of DaemonSets are left out: most stay, and the others go
// last.
func (a allowances) freePods(pods []*cluster.Pod, now time.Time) (free []string, takes map[*plan.DisruptionBudget]int32, left int) {
	takes = map[*plan.DisruptionBudget]int32{}
	for _, pod := range pods {
		if pod.Daemon || pod.Static || pod.Terminal {
			continue
		}
		left++
		if pod.Terminating() || pod.Undisruptable(now) {
			continue
		}
		var covering []*plan.DisruptionBudget
		for _, budget := range a.budgets[pod.Namespace] {
			if budget.Selector.Matches(labels.Set(pod.Labels.Set)) {
				covering = append(covering, budget)
			}
		}
		switch {
		case len(covering) == 0, len(covering) == 1 && covering[0].UnhealthyGo && !pod.Ready:
			free = append(free, string(pod.UID))
		case len(covering) == 1 && a.allows[covering[0]] > takes[covering[0]]:
			takes[covering[0]]++
			free = append(free, string(pod.UID))
		}
	}
	slices.Sort(free)
	return free, takes, left
}

// take has a drain that was just woken take what its pods need.
func (a allowances) take(taken map[*plan.DisruptionBudget]int32) {
	for budget, pods := range taken {
		a.allows[budget] -= pods
	}
}

// notify tells the drain of a node something. One that is over needs to know nothing.
func (s *Starter) notify(ctx context.Context, node string, fact workflows.DrainWaiter) error {
	err := s.Temporal.SignalWorkflow(ctx, s.Cluster.DrainID(node), "", workflows.SignalDrainNotify, fact)
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return fmt.Errorf("signal %s: %w", s.Cluster.DrainID(node), err)
	}
	return nil
}
