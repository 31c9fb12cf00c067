package status

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// judgeEvery is the minimum interval between looks at all claims.
	judgeEvery = 2 * time.Second
	// freshEnough is the maximum age of the mirror for a verdict on nodes, and staleAgain the delay before the next
	// look when it is older.
	freshEnough, staleAgain = 30 * time.Second, 10 * time.Second
	// conditionWriters is the number of concurrent writes of conditions.
	conditionWriters = 8
	// holdFor is how long Consolidatable is held back: a node that is removed as soon as it may be need not show it.
	holdFor = 20 * time.Second
)

// NodeClaimMirror is the part of the mirror that NodeClaims reads.
type NodeClaimMirror interface {
	WaitSynced(ctx context.Context) error
	Fresh(most time.Duration) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Snapshot() *plan.Snapshot
	Claims() []*karpv1.NodeClaim
	NodeClass(name string) cloud.NodeClass
}

// NodeClaims keeps the conditions Drifted, Consolidatable and ConsistentStateFound of every NodeClaim up to date. As
// with Karpenter a condition that does not hold is removed, not set to False; ConsistentStateFound is present only as
// False. All of it follows from the mirror and from the cloud's answer about the running instances: one call every five
// minutes for all instances together, and more only while instances are launched, so that an idle cluster costs a dozen
// calls an hour whatever its size. What a class selects is in its status, so that a new image shows at once without any
// call.
//
// Each change of a claim costs at most one write, with all conditions and lastPodEventTime together. Consolidatable is
// written holdFor late, unless there is something else to write: most nodes that nobody needs are gone by then. Claims
// that are being deleted, and those without a NodePool, are left alone, and so is Consolidatable while a node is being
// replaced.
type NodeClaims struct {
	kube   kube.Client
	mirror NodeClaimMirror
	drift  *drift
	log    *zap.Logger
	now    func() time.Time
	// Events records Kubernetes Events; nil records none.
	Events record.EventRecorder
	// held are the claims whose Consolidatable is held back, and until when.
	held map[types.UID]time.Time
}

// NewNodeClaims returns the NodeClaims of a cluster; Run does the work. client must not read from a cache.
func NewNodeClaims(kind cloud.Kind, client kube.Client, mirror NodeClaimMirror, provider DriftCloud, log *zap.Logger) *NodeClaims {
	return &NodeClaims{kube: client, mirror: mirror, log: log, now: time.Now,
		drift: &drift{cloud: provider, class: mirror.NodeClass, log: log, specs: newClassSpecs(kind)}}
}

// Run keeps the claims until ctx ends. The first change after a quiet time shows at once; during a burst there is one
// look every judgeEvery. Only the holder of the Lease may call it, and at most once.
func (c *NodeClaims) Run(ctx context.Context) error {
	return loop{
		what: "conditions of NodeClaims", rest: judgeEvery,
		kinds: []cluster.EventKind{cluster.ClaimChanged, cluster.NodeChanged, cluster.PodsChanged, cluster.NodeEmptied, cluster.PoolEdited, cluster.ClassChanged},
		look:  c.pass,
	}.run(ctx, c.mirror, c.log)
}

// pass brings every claim up to date and returns when to look again without a change; zero for never.
func (c *NodeClaims) pass(ctx context.Context) (time.Duration, error) {
	if err := c.mirror.Fresh(freshEnough); err != nil {
		return staleAgain, nil //nolint:nilerr // an old view is looked at again, and is no failure
	}
	snapshot := c.mirror.Snapshot()
	judged := c.judged(snapshot)
	if len(judged) == 0 {
		return 0, nil
	}
	verdicts, next := c.drift.judge(ctx, judged, c.now())
	now := snapshot.Time
	held := map[types.UID]time.Time{}
	for _, n := range snapshot.Nodes {
		pair := judged[n.Claim]
		if pair == nil {
			continue
		}
		v := verdicts[n.Claim]
		v.consolidatable, v.when = n.Consolidatable(pair.pool, now)
		v.lastPodEvent, v.going, v.shortfall = n.LastPodEvent, n.Disrupted, shortfall(pair.claim, n)
		if v.consolidatable && !v.going && !pair.claim.IsTrue(karpv1.ConditionTypeConsolidatable) {
			v.heldUntil = c.hold(pair.claim.UID, now)
			held[pair.claim.UID] = v.heldUntil
			v.when = v.heldUntil
		}
		if v.when.After(now) && v.when.Before(next) {
			next = v.when
		}
	}
	c.held = held
	return max(next.Sub(c.now()), judgeEvery), c.write(ctx, judged, verdicts, now)
}

// hold returns the time until which the Consolidatable of a claim is held back.
func (c *NodeClaims) hold(claim types.UID, now time.Time) time.Time {
	if until, held := c.held[claim]; held {
		return until
	}
	return now.Add(holdFor)
}

// judged returns the claims whose conditions are kept, by name.
func (c *NodeClaims) judged(snapshot *plan.Snapshot) map[string]*owned {
	pools := map[string]*karpv1.NodePool{}
	for _, pool := range snapshot.NodePools {
		pools[pool.Name] = pool
	}
	found := map[string]*owned{}
	for _, claim := range c.mirror.Claims() {
		pool := pools[claim.Labels[karpv1.NodePoolLabelKey]]
		if pool == nil || !pool.DeletionTimestamp.IsZero() || !claim.DeletionTimestamp.IsZero() {
			continue
		}
		found[claim.Name] = &owned{claim: claim, pool: pool}
	}
	return found
}

// write writes the conditions that have changed. A conflict means that the mirror is behind; its next change brings the
// claim back here.
func (c *NodeClaims) write(ctx context.Context, judged map[string]*owned, verdicts map[string]*verdict, now time.Time) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(conditionWriters)
	var mu sync.Mutex
	var errs []error
	for name := range maps.Keys(judged) {
		before := judged[name].claim
		drifted, consolidatable := verdicts[name].conditions(before, now)
		consistent := verdicts[name].consistent()
		if !drifted.news(before) && !consistent.news(before) && (!consolidatable.news(before) || now.Before(verdicts[name].heldUntil)) {
			continue
		}
		after := before.DeepCopy()
		drifted.put(after)
		inconsistent := consistent.put(after) && consistent.holds
		if event := metav1.NewTime(verdicts[name].lastPodEvent.Truncate(time.Second)); consolidatable.put(after) && event.After(after.Status.LastPodEventTime.Time) {
			after.Status.LastPodEventTime = event
		}
		group.Go(func() error {
			err := c.kube.Status().Patch(ctx, after, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
			switch {
			case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			case err != nil:
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("NodeClaim %s: %w", name, err))
			default:
				c.logDrift(before, after)
				if inconsistent && c.Events != nil {
					c.Events.Event(after, corev1.EventTypeWarning, eventInconsistent, consistent.message)
				}
			}
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

// logDrift logs that a claim has drifted, or no longer has.
func (c *NodeClaims) logDrift(before, after *karpv1.NodeClaim) {
	was, is := before.Condition(karpv1.ConditionTypeDrifted), after.Condition(karpv1.ConditionTypeDrifted)
	fields := []zap.Field{zap.String("claim", after.Name), zap.String("node", after.Status.NodeName), zap.String("pool", after.Labels[karpv1.NodePoolLabelKey])}
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason):
		c.log.Info("drifted", append(fields, zap.String("reason", is.Reason), zap.String("message", is.Message))...)
	case is == nil && was != nil:
		c.log.Info("no longer drifted", append(fields, zap.String("was", was.Reason))...)
	}
}
