package starter

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// lookEvery is the minimum interval between looks at blocked drains.
	lookEvery = 500 * time.Millisecond
	// wakeAgain and maxWake limit the pause between signals to a drain whose pods the mirror shows as evictable but
	// which are not evicted: something that it does not show refuses them, such as a webhook.
	wakeAgain, maxWake = time.Minute, 30 * time.Minute
	// takesFor is how long a woken drain has to use what its budgets allow, before another drain may.
	takesFor = 5 * time.Second
)

// blockedDrains is what the blocked drains were last told, by the UIDs of their nodes.
type blockedDrains map[types.UID]*blockedDrain

type blockedDrain struct {
	// left is how many pods still had to leave, free which were evictable when the drain was woken, and woken when that
	// was; zero for never.
	left  int
	free  []string
	woken time.Time
	// opened says that the drain was told that somebody has opened its node.
	opened bool
	// pause is how long the drain is not told the same again.
	pause time.Duration
}

// drains wakes blocked drains when their pods may be evictable again.
type drains struct {
	mirror    Mirror
	workflows *signaller
	// told is what the blocked drains were last told.
	told blockedDrains
	log  *zap.Logger
}

// watch wakes drains until ctx ends.
func (d *drains) watch(ctx context.Context) error {
	events := d.mirror.Subscribe(cluster.BudgetsChanged, cluster.PodsChanged, cluster.NodeChanged)
	defer events.Close()
	for {
		wait := d.wake(ctx, time.Now())
		seen := awaitEvents(ctx, events, wait)
		if err := smithytime.SleepWithContext(ctx, lookEvery); err != nil {
			return err
		}
		d.tellGone(ctx, slices.Concat(seen, events.Take()))
	}
}

// tellGone notifies drains whose node is gone: a blocked drain would not notice it. Most nodes are removed at the end
// of their drain; then this costs only a request.
func (d *drains) tellGone(ctx context.Context, seen []cluster.Event) {
	for _, event := range seen {
		if event.Kind != cluster.NodeChanged || d.mirror.Node(event.Name) != nil {
			continue
		}
		if err := d.workflows.tellDrain(ctx, event.Name, workflows.DrainWaiter{Gone: true}); err != nil {
			d.log.Warn("could not tell a drain that its node is gone; the sweep will", zap.String("node", event.Name), zap.Error(err))
		}
	}
}

// wake wakes the drains that may continue, those that have waited longest first, and only as many as their budgets
// allow. It returns when to look again without a change; zero for never.
func (d *drains) wake(ctx context.Context, now time.Time) (wait time.Duration) {
	var nodes []*corev1.Node
	waiting := map[types.UID]bool{}
	for _, node := range d.mirror.Nodes() {
		if node.Annotations[karpv1.DrainBlockedAnnotationKey] != "" {
			nodes, waiting[node.UID] = append(nodes, node), true
		}
	}
	maps.DeleteFunc(d.told, func(uid types.UID, _ *blockedDrain) bool { return !waiting[uid] })
	if len(nodes) == 0 {
		return 0
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int {
		return cmp.Or(strings.Compare(a.Annotations[karpv1.DrainBlockedAnnotationKey], b.Annotations[karpv1.DrainBlockedAnnotationKey]), strings.Compare(a.Name, b.Name))
	})
	budgets := newAllowances(d.mirror.Snapshot().DisruptionBudgets)
	sooner := func(d time.Duration) {
		if wait == 0 || d < wait {
			wait = d
		}
	}
	for _, node := range nodes {
		free, takes, left := budgets.freePods(d.mirror.PodsOnNode(node.Name), now)
		due, again := d.told.due(node.UID, free, left, opened(node), now)
		if due {
			if err := d.workflows.tellDrain(ctx, node.Name, workflows.DrainWaiter{NodeUID: string(node.UID), Wake: true}); err != nil {
				d.log.Warn("could not wake a drain", zap.String("node", node.Name), zap.Error(err))
				delete(d.told, node.UID)
			}
		}
		if again > 0 {
			sooner(again)
		}
		if last := d.told[node.UID]; last == nil || now.Sub(last.woken) < takesFor {
			budgets.take(takes)
			sooner(takesFor)
		}
	}
	return wait
}

// due says whether to wake a drain now, and otherwise when to ask again without a change; zero for never. A drain is
// woken when pods are gone, when other pods than before are evictable, when somebody has opened its node, and after a
// pause when the same still holds. A drain that is seen for the first time has just looked itself, and is woken only if
// pods are evictable, none is left or its node is open.
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
		last.pause = min(2*last.pause, maxWake)
	}
	last.left, last.free, last.opened, last.woken = left, free, opened, now
	return true, 0
}

// opened reports whether somebody has removed the taint from a draining node of a claim: only a pass puts it back.
func opened(node *corev1.Node) bool {
	return node.Labels[karpv1.NodePoolLabelKey] != "" && !disrupted(node)
}
