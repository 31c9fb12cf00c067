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

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// judgeEvery spaces the looks at all claims while things change.
	judgeEvery = 2 * time.Second
	// freshEnough is how old the mirror may be for a node to be called unneeded, and staleAgain how soon it is looked again
	// where it is older.
	freshEnough, staleAgain = 30 * time.Second, 10 * time.Second
	// conditionWriters is how many conditions are written at once.
	conditionWriters = 8
	// holdFor is for how long Consolidatable is held back: a node that is taken away as soon as it is quiet need not have
	// said so.
	holdFor = 20 * time.Second
)

// NodeClaimMirror is what the conditions of NodeClaims follow from.
type NodeClaimMirror interface {
	WaitSynced(ctx context.Context) error
	Fresh(most time.Duration) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Snapshot() *plan.Snapshot
	Claims() []*karpv1.NodeClaim
	NodeClass(name string) *awsv1.EC2NodeClass
}

// NodeClaims keeps the conditions Drifted, Consolidatable and ConsistentStateFound of every NodeClaim truthful. As
// with Karpenter a condition that does not hold is taken off, not set to False; the last one is there only as False. All of
// it follows from the mirror and from what the cloud has said of the running instances: that is one call, every five
// minutes, for all instances together, so that an idle cluster costs a dozen calls an hour whatever its size, and sooner
// only while instances come. What a class selects is in its status, so that a new image shows at once without any call.
//
// A claim has one write at most each time something about it changes, all conditions and lastPodEventTime together.
// Consolidatable comes holdFor late, unless there is something else to write: most nodes that nobody needs are gone by
// then.
// Claims that are being deleted, and those of no NodePool, are left alone, and so is Consolidatable while a node is being
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

// NewNodeClaims returns what keeps the claims of a cluster; Run does the work. client must not read from a cache.
func NewNodeClaims(client kube.Client, mirror NodeClaimMirror, provider DriftCloud, log *zap.Logger) *NodeClaims {
	return &NodeClaims{kube: client, mirror: mirror, log: log, now: time.Now,
		drift: &drift{cloud: provider, class: mirror.NodeClass, log: log, specs: classSpecs{}}}
}

// Run keeps the claims until ctx ends. The first change after a quiet time shows at once; a burst is looked at once
// every judgeEvery. It is to be called by the holder of the Lease only, and at most once.
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

// hold returns until when the Consolidatable of a claim is held back.
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

// write writes what has changed. A conflict means that the mirror is behind; its next change brings the claim here again.
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

// logDrift says in the log that a claim has drifted, or no longer does.
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
