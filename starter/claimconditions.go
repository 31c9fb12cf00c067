package starter

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
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// judgeEvery spaces the looks at all claims while things change.
	judgeEvery = 2 * time.Second
	// factsEvery is how often the cloud is asked what runs. Who changes an instance behind our back is found out then.
	factsEvery = 5 * time.Minute
	// factsSoon is how long after an answer the cloud is asked again while instances come that were not in it.
	factsSoon = 15 * time.Second
	// factsRetry is how long after the cloud did not answer it is asked again.
	factsRetry = time.Minute
	// conditionWriters is how many conditions are written at once.
	conditionWriters = 8
	// blinkFor is for how long Consolidatable stays although it does not hold: one that will be back so soon is not
	// worth two writes each time a pod comes or goes.
	blinkFor = 10 * time.Second
	// holdFor is for how long Consolidatable is held back: a node that is taken away as soon as it is quiet need not have
	// said so.
	holdFor = 20 * time.Second
)

// ClaimConditionsMirror is what the conditions of NodeClaims follow from.
type ClaimConditionsMirror interface {
	WaitSynced(ctx context.Context) error
	Fresh(most time.Duration) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Snapshot() *plan.Snapshot
	Claims() []*karpv1.NodeClaim
	NodeClass(name string) *awsv1.EC2NodeClass
}

// DriftCloud is what is asked of a provider to find drift.
type DriftCloud interface {
	InstanceTypes(ctx context.Context, class *awsv1.EC2NodeClass) ([]*cloud.InstanceType, error)
	Instances(ctx context.Context, query cloud.Query) ([]cloud.Instance, error)
	Drift(ctx context.Context, class *awsv1.EC2NodeClass, questions []cloud.DriftQuestion) ([]cloud.Drift, error)
}

// ClaimConditions keeps the conditions Drifted, Consolidatable and ConsistentStateFound of every NodeClaim truthful. As
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
type ClaimConditions struct {
	kube   kube.Client
	mirror ClaimConditionsMirror
	cloud  DriftCloud
	log    *zap.Logger
	now    func() time.Time
	// Events records Kubernetes Events; nil records none.
	Events record.EventRecorder
	// instances are what the cloud said last, by provider id; askedAt is when it was asked, askAt when it is asked again.
	instances      map[string]cloud.Instance
	askedAt, askAt time.Time
	specs          classSpecs
	// held are the claims whose Consolidatable is held back, and until when.
	held map[types.UID]time.Time
}

// NewClaimConditions returns what keeps the claims of a cluster; Run does the work. client must not read from a cache.
func NewClaimConditions(client kube.Client, mirror ClaimConditionsMirror, provider DriftCloud, log *zap.Logger) *ClaimConditions {
	return &ClaimConditions{kube: client, mirror: mirror, cloud: provider, log: log, now: time.Now, specs: classSpecs{}}
}

// Run keeps the claims until ctx ends. The first change after a quiet time shows at once; a burst is looked at once
// every judgeEvery. It is to be called by the holder of the Lease only, and at most once.
func (c *ClaimConditions) Run(ctx context.Context) error {
	if err := c.mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("conditions of NodeClaims: wait for the mirror: %w", err)
	}
	events := c.mirror.Subscribe(cluster.ClaimChanged, cluster.NodeChanged, cluster.PodsChanged, cluster.NodeEmptied, cluster.PoolEdited, cluster.ClassChanged)
	defer events.Close()
	for {
		events.Take()
		wait, err := c.pass(ctx)
		if err != nil && ctx.Err() == nil {
			wait = statusRetry
			c.log.Warn("conditions of NodeClaims will be written again", zap.Error(err))
		}
		if err := sleep(ctx, judgeEvery); err != nil {
			return err
		}
		awaitEvents(ctx, events, wait)
	}
}

// verdict is what the conditions of a claim have to say.
type verdict struct {
	// drift is the zero Drift where there is none; settled is false while the cloud's part of the answer is not known.
	drift   cloud.Drift
	settled bool
	// vague says that the drift's message does not name the field, which an earlier one may have done.
	vague bool
	// consolidatable holds, or will at a time that is not zero.
	consolidatable bool
	when           time.Time
	// heldUntil is until when nothing is written for Consolidatable alone.
	heldUntil    time.Time
	lastPodEvent time.Time
	// going says that the node is being taken away, so that whether it may be is no news.
	going bool
	// shortfall is what the node lacks of what was bought; empty where it lacks nothing.
	shortfall string
}

// pass brings every claim up to date and returns when to look again without a change; zero for never.
func (c *ClaimConditions) pass(ctx context.Context) (time.Duration, error) {
	if err := c.mirror.Fresh(freshEnough); err != nil {
		return evaluateEvery, nil
	}
	snapshot := c.mirror.Snapshot()
	judged := c.judged(snapshot)
	if len(judged) == 0 {
		return 0, nil
	}
	c.ask(ctx, judged)
	verdicts := c.drifts(ctx, judged)
	next := c.askAt
	if soon := c.askedAt.Add(factsSoon); c.lacksInstances(judged, c.now()) && soon.Before(next) {
		next = soon
	}
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
func (c *ClaimConditions) hold(claim types.UID, now time.Time) time.Time {
	if until, held := c.held[claim]; held {
		return until
	}
	return now.Add(holdFor)
}

// owned is a claim and the pool it belongs to.
type owned struct {
	claim *karpv1.NodeClaim
	pool  *karpv1.NodePool
}

// judged returns the claims whose conditions are kept, by name.
func (c *ClaimConditions) judged(snapshot *plan.Snapshot) map[string]*owned {
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
func (c *ClaimConditions) write(ctx context.Context, judged map[string]*owned, verdicts map[string]*verdict, now time.Time) error {
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
func (c *ClaimConditions) logDrift(before, after *karpv1.NodeClaim) {
	was, is := before.Condition(karpv1.ConditionTypeDrifted), after.Condition(karpv1.ConditionTypeDrifted)
	fields := []zap.Field{zap.String("claim", after.Name), zap.String("node", after.Status.NodeName), zap.String("pool", after.Labels[karpv1.NodePoolLabelKey])}
	switch {
	case is != nil && (was == nil || was.Reason != is.Reason):
		c.log.Info("drifted", append(fields, zap.String("reason", is.Reason), zap.String("message", is.Message))...)
	case is == nil && was != nil:
		c.log.Info("no longer drifted", append(fields, zap.String("was", was.Reason))...)
	}
}

// wish is what a condition is to be: True for a reason, or False, or not there; or as it is, which is the zero wish.
type wish struct {
	condition       string
	holds           bool
	reason, message string
	// denies says that the condition is False where it holds; one that is True is somebody else's.
	denies bool
}

// status is what the condition is where it holds.
func (w wish) status() metav1.ConditionStatus {
	if w.denies {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// news says that a claim does not say so yet.
func (w wish) news(claim *karpv1.NodeClaim) bool {
	if w.condition == "" {
		return false
	}
	is := claim.Condition(w.condition)
	if is == nil || !w.holds {
		there := is != nil && (!w.denies || is.Status == w.status())
		return there != w.holds
	}
	return is.Status != w.status() || is.Reason != w.reason || is.Message != w.message
}

// put has a claim say so, and returns whether that is news.
func (w wish) put(claim *karpv1.NodeClaim) bool {
	switch {
	case !w.news(claim):
		return false
	case w.holds:
		return claim.SetCondition(metav1.Condition{Type: w.condition, Status: w.status(), Reason: w.reason, Message: w.message})
	}
	return claim.ClearCondition(w.condition)
}

// consistent is what the condition ConsistentStateFound is to be: False, where the node lacks something.
func (v *verdict) consistent() wish {
	return wish{condition: karpv1.ConditionTypeConsistentStateFound, holds: v.shortfall != "", reason: reasonInconsistent, message: v.shortfall, denies: true}
}

// conditions are what the conditions of a claim are to be.
func (v *verdict) conditions(claim *karpv1.NodeClaim, now time.Time) (drifted, consolidatable wish) {
	off := wish{condition: karpv1.ConditionTypeDrifted}
	switch is := claim.Condition(karpv1.ConditionTypeDrifted); {
	case !claim.IsTrue(karpv1.ConditionTypeLaunched):
		drifted = off
	case v.drift.Reason != "":
		drifted = wish{condition: karpv1.ConditionTypeDrifted, holds: true, reason: v.drift.Reason, message: v.drift.Message[:min(len(v.drift.Message), maxConditionMessage)]}
		if v.vague && is != nil && is.Reason == v.drift.Reason {
			drifted.message = is.Message
		}
	case is != nil && (v.settled || ownDrift(is.Reason)):
		drifted = off
	}
	switch {
	case v.going:
	case v.consolidatable:
		consolidatable = wish{condition: karpv1.ConditionTypeConsolidatable, holds: true, reason: karpv1.ConditionTypeConsolidatable}
	case v.when.IsZero() || v.when.Sub(now) > blinkFor:
		consolidatable = wish{condition: karpv1.ConditionTypeConsolidatable}
	}
	return drifted, consolidatable
}

// ownDrift says that a reason is one that is known without the cloud.
func ownDrift(reason string) bool {
	return reason == plan.DriftNodePool || reason == plan.DriftRequirements
}
