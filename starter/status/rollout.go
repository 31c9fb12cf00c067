package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
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
	// askEvery is how often a rollout's query is asked while its nodes are watched.
	askEvery = 20 * time.Second
	// readyFor is how long a pod has to be Ready for an earlier time without to be forgotten: one that crashes again and again
	// is Ready in between.
	readyFor = time.Minute
)

// RolloutMirror is the part of the mirror that Rollouts reads.
type RolloutMirror interface {
	WaitSynced(ctx context.Context) error
	Fresh(most time.Duration) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Snapshot() *plan.Snapshot
	NodePools() []*karpv1.NodePool
	NodeClass(name string) cloud.NodeClass
	Claim(name string) *karpv1.NodeClaim
	Node(name string) *corev1.Node
}

// Rollouts keeps how far the rollout of each NodePool is, in an annotation and in the condition Rollout. What can be seen
// in the cluster is not kept anywhere else, so that a rollout outlives workers and Temporal. The planner reads the
// annotation when it decides which drifted nodes go (package disrupt).
type Rollouts struct {
	kind     cloud.Kind
	kube     kube.Client
	mirror   RolloutMirror
	policies []cloud.RepairPolicy
	log      *zap.Logger
	now      func() time.Time
	// Query asks Prometheus; nil where no address is known.
	Query func(ctx context.Context, query string) plan.RolloutAnswer
	// Events records Events on NodePools; nil records none. Metrics may be nil as well.
	Events  record.EventRecorder
	Metrics *RolloutMetrics
	// unready are the pods that have not been Ready, by UID, and answers the last answers of Prometheus, by NodePool.
	unready map[types.UID]unready
	answers map[string]answer
}

// unready is since when a pod has not been Ready for good; ready is since when it has been, zero while it is not. again says
// that it was Ready before, and then was not.
type unready struct {
	since, ready time.Time
	again        bool
}

// counts says that the pod is not Ready, or was not a moment ago and may not stay so.
func (u unready) counts() bool { return u.ready.IsZero() || u.again }

// answer is an answer of Prometheus, and what was asked.
type answer struct {
	query string
	plan.RolloutAnswer
}

// NewRollouts returns the Rollouts of a cluster; Run does the work. client must not read from a cache. policies say which
// conditions of a Node show that it is ill.
func NewRollouts(kind cloud.Kind, client kube.Client, mirror RolloutMirror, policies []cloud.RepairPolicy, log *zap.Logger) *Rollouts {
	return &Rollouts{kind: kind, kube: client, mirror: mirror, policies: policies, log: log, now: time.Now, unready: map[types.UID]unready{}, answers: map[string]answer{}}
}

// Run keeps the rollouts until ctx ends. Only the holder of the Lease may call it, and at most once.
func (r *Rollouts) Run(ctx context.Context) error {
	defer r.Metrics.keep(nil)
	return loop{
		what: "rollouts of NodePools", rest: statusEvery,
		kinds: []cluster.EventKind{cluster.PoolChanged, cluster.ClassChanged, cluster.ClaimChanged, cluster.NodeChanged, cluster.PodsChanged},
		look:  r.pass,
	}.run(ctx, r.mirror, r.log)
}

// pass judges every rollout, and returns when to look again without a change; zero for never.
func (r *Rollouts) pass(ctx context.Context) (time.Duration, error) {
	var rolled []*karpv1.NodePool
	var errs []error
	for _, pool := range r.mirror.NodePools() {
		switch _, some := pool.Annotations[karpv1.RolloutAnnotationKey]; {
		case pool.Observed() || !pool.DeletionTimestamp.IsZero():
		case some:
			rolled = append(rolled, pool)
		default:
			errs = append(errs, r.clear(ctx, pool.DeepCopy()))
		}
	}
	r.Metrics.keep(rolled)
	if len(rolled) == 0 {
		return 0, errors.Join(errs...)
	}
	if err := r.mirror.Fresh(freshEnough); err != nil {
		return staleAgain, errors.Join(errs...)
	}
	snapshot := r.mirror.Snapshot()
	next := r.look(snapshot)
	for _, pool := range rolled {
		at, err := r.keep(ctx, pool, snapshot)
		if err != nil {
			errs = append(errs, fmt.Errorf("NodePool %s: %w", pool.Name, err))
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return 0, errors.Join(errs...)
	}
	return max(next.Sub(r.now()), statusEvery), errors.Join(errs...)
}

// look notes which pods are not Ready, and returns when one of them will have been Ready for long enough to be forgotten; zero
// if none will. What was seen before this replica led is not known, which only delays a verdict.
func (r *Rollouts) look(snapshot *plan.Snapshot) (next time.Time) {
	seen, now := map[types.UID]unready{}, r.now()
	for _, n := range snapshot.Nodes {
		for _, pod := range n.Pods {
			was, known := r.unready[pod.UID]
			switch {
			case pod.Terminal:
				continue
			case !pod.Ready && !known:
				was.since = now
			case !pod.Ready:
				was.again = was.again || !was.ready.IsZero()
				was.ready = time.Time{}
			case !known || !was.ready.IsZero() && now.Sub(was.ready) >= readyFor:
				continue
			case was.ready.IsZero():
				was.ready = now
			}
			seen[pod.UID] = was
			if forgotten := was.ready.Add(readyFor); was.again && !was.ready.IsZero() && (next.IsZero() || forgotten.Before(next)) {
				next = forgotten
			}
		}
	}
	r.unready = seen
	return next
}

// keep brings one NodePool up to date, and returns when to look again without a change. A conflict means that the mirror is
// behind; its next change brings the pool back here.
func (r *Rollouts) keep(ctx context.Context, pool *karpv1.NodePool, snapshot *plan.Snapshot) (time.Time, error) {
	facts, class := r.facts(pool, snapshot)
	targets, err := pool.RolloutTargets()
	if err == nil && targets.Previous != nil {
		facts.Previous = targets.Previous.Target
	}
	judged := plan.JudgeRollout(facts)
	if judged.Asks {
		facts.Answer = r.ask(ctx, pool)
		judged = plan.JudgeRollout(facts)
		if again := r.now().Add(askEvery); judged.Asks && (judged.NextLook.IsZero() || again.Before(judged.NextLook)) {
			judged.NextLook = again
		}
	}
	after := pool.DeepCopy()
	if judged.Reason != karpv1.RolloutInvalid && judged.Reason != karpv1.RolloutUnknown {
		if before, _ := pool.RolloutState(); before.Target != judged.State.Target && proven(before, facts.Nodes, r.now()) {
			targets.Previous = targets.Current
		}
		if err := r.remember(after, class, judged.State, targets); err != nil {
			return judged.NextLook, err
		}
	}
	err = r.write(ctx, pool, after, judged)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return judged.NextLook, nil
	}
	if err != nil {
		return judged.NextLook, err
	}
	r.tell(pool, after, judged)
	return judged.NextLook, nil
}

// facts gathers what is known about a pool's rollout.
func (r *Rollouts) facts(pool *karpv1.NodePool, snapshot *plan.Snapshot) (plan.RolloutFacts, cloud.NodeClass) {
	var class cloud.NodeClass
	if ref := pool.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Kind == r.kind.Kind {
		class = r.mirror.NodeClass(ref.Name)
	}
	facts := plan.RolloutFacts{Pool: pool, Now: r.now(), Unready: map[types.UID]time.Time{}, Answer: r.answers[pool.Name].RolloutAnswer}
	if class != nil {
		facts.Target = plan.RolloutTarget(pool, class, r.kind)
	}
	for uid, of := range r.unready {
		if of.counts() {
			facts.Unready[uid] = of.since
		}
	}
	for _, n := range snapshot.Nodes {
		if n.Pool != pool.Name || !n.Managed() {
			facts.Others = append(facts.Others, n)
			continue
		}
		node := plan.RolloutNode{Node: n}
		if claim := r.mirror.Claim(n.Claim); claim != nil && claim.IsTrue(karpv1.ConditionTypeLaunched) {
			node.LaunchedAt = claim.Condition(karpv1.ConditionTypeLaunched).LastTransitionTime.Time
		}
		if object := r.mirror.Node(n.Name); object != nil {
			node.Ill, node.IllSince = plan.Illness(object, r.policies)
		}
		facts.Nodes = append(facts.Nodes, node)
	}
	return facts, class
}

// ask asks a pool's query, unless that was done a moment ago.
func (r *Rollouts) ask(ctx context.Context, pool *karpv1.NodePool) plan.RolloutAnswer {
	query, last := pool.Annotations[karpv1.RolloutQueryAnnotationKey], r.answers[pool.Name]
	if last.query == query && r.now().Sub(last.At) < askEvery && last.Unknown == "" && last.Failed == "" {
		return last.RolloutAnswer
	}
	found := plan.RolloutAnswer{Unknown: "the worker does not know where Prometheus is (--prometheus-url)"}
	if r.Query != nil {
		found = r.Query(ctx, query)
	}
	found.At = r.now()
	r.answers[pool.Name] = answer{query, found}
	return found
}

// settledFor is how long a target from which no node has drifted has to hold to be one that people can go back to: changes of
// a NodePool and its class come one after the other.
const settledFor = time.Minute

// proven says that all nodes were of a target, or that nodes made from it serve and none has drifted to it: people can go
// back to it.
func proven(state karpv1.RolloutState, nodes []plan.RolloutNode, now time.Time) bool {
	if !state.Seen.IsZero() || state.Target == "" {
		return !state.Done.IsZero()
	}
	serves := func(n plan.RolloutNode) bool { return n.Initialized && !n.Created.Before(state.Began) }
	return now.Sub(state.Began) >= settledFor || slices.ContainsFunc(nodes, serves)
}

// remember puts into the annotations how far the rollout is, and what the nodes are and were made from.
func (r *Rollouts) remember(pool *karpv1.NodePool, class cloud.NodeClass, state karpv1.RolloutState, targets karpv1.RolloutTargets) error {
	current, err := describe(pool, class, state.Target)
	if err != nil {
		return err
	}
	targets.Current = current
	for key, value := range map[string]any{karpv1.RolloutStateAnnotationKey: state, karpv1.RolloutTargetsAnnotationKey: targets} {
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("annotation %s: %w", key, err)
		}
		metav1.SetMetaDataAnnotation(&pool.ObjectMeta, key, string(text))
	}
	return nil
}

// describe returns what the nodes of a pool are made from.
func describe(pool *karpv1.NodePool, class cloud.NodeClass, target string) (*karpv1.RolloutTarget, error) {
	text, err := json.Marshal(class)
	var object struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		return nil, fmt.Errorf("read the spec of node class %s: %w", class.GetName(), err)
	}
	return &karpv1.RolloutTarget{Target: target, Template: pool.Spec.Template.DeepCopy(), ClassSpec: object.Spec, Images: class.Images()}, nil
}

// write writes the annotations and the condition that have changed.
func (r *Rollouts) write(ctx context.Context, pool, after *karpv1.NodePool, judged plan.RolloutJudgement) error {
	lock := kube.MergeFromWithOptions(pool, kube.MergeFromWithOptimisticLock{})
	if !equality.Semantic.DeepEqual(pool.Annotations, after.Annotations) {
		if err := r.kube.Patch(ctx, after, lock); err != nil {
			return err
		}
	}
	before := after.DeepCopy()
	status := metav1.ConditionTrue
	if judged.Reason == karpv1.RolloutStopped || judged.Reason == karpv1.RolloutInvalid || judged.Reason == karpv1.RolloutUnknown {
		status = metav1.ConditionFalse
	}
	after.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeRollout, Status: status, Reason: judged.Reason, Message: fitting(judged.Message)})
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	return r.kube.Status().Patch(ctx, after, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
}

// tell shows metrics, and records an Event when the rollout has come to something else.
func (r *Rollouts) tell(before, after *karpv1.NodePool, judged plan.RolloutJudgement) {
	r.Metrics.show(after.Name, judged)
	was, state := before.Condition(karpv1.ConditionTypeRollout), judged.State
	old, _ := before.RolloutState()
	if was != nil && was.Reason == judged.Reason && old.Step == state.Step && old.Target == state.Target {
		return
	}
	r.log.Info("rollout", zap.String("pool", after.Name), zap.String("reason", judged.Reason), zap.String("message", judged.Message), zap.String("target", state.Target))
	if r.Events == nil || was == nil && judged.Reason == karpv1.RolloutComplete {
		return
	}
	kind := corev1.EventTypeNormal
	if judged.Reason == karpv1.RolloutStopped || judged.Reason == karpv1.RolloutInvalid {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: after.Name, UID: after.UID}, kind, rolloutEvent(judged.Reason), judged.Message)
}

// Reasons of the Events about rollouts; docs/reference/events.md shows these comments.
const (
	// eventRolloutProgressing says that nodes of the NodePool are replaced for the rollout's present step.
	eventRolloutProgressing = "RolloutProgressing"
	// eventRolloutBaking says that the nodes of the present step serve, and are watched.
	eventRolloutBaking = "RolloutBaking"
	// eventRolloutStopped says at which step a rollout has stopped, and why.
	eventRolloutStopped = "RolloutStopped"
	// eventRolloutComplete says that the rollout has come to the end of its steps.
	eventRolloutComplete = "RolloutComplete"
	// eventRolloutInvalid says which annotation of the NodePool cannot be read. No drifted node is replaced until it is corrected.
	eventRolloutInvalid = "RolloutInvalid"
	// eventRolloutUnknown says why it is not known what the nodes are to be made from, such as a node class that is not ready.
	eventRolloutUnknown = "RolloutUnknown"
)

// rolloutEvent returns the reason of the Event about a rollout's condition.
func rolloutEvent(reason string) string {
	switch reason {
	case karpv1.RolloutProgressing:
		return eventRolloutProgressing
	case karpv1.RolloutBaking:
		return eventRolloutBaking
	case karpv1.RolloutStopped:
		return eventRolloutStopped
	case karpv1.RolloutComplete:
		return eventRolloutComplete
	case karpv1.RolloutInvalid:
		return eventRolloutInvalid
	}
	return eventRolloutUnknown
}

// clear removes what a rollout has left on a NodePool that has none any more.
func (r *Rollouts) clear(ctx context.Context, pool *karpv1.NodePool) error {
	if pool.Condition(karpv1.ConditionTypeRollout) == nil {
		return nil
	}
	err := patch(ctx, r.kube, pool, func() {
		for _, key := range []string{karpv1.RolloutStateAnnotationKey, karpv1.RolloutTargetsAnnotationKey, karpv1.RolloutOrderAnnotationKey} {
			delete(pool.Annotations, key)
		}
	})
	if err == nil {
		before := pool.DeepCopy()
		pool.ClearCondition(karpv1.ConditionTypeRollout)
		err = r.kube.Status().Patch(ctx, pool, kube.MergeFromWithOptions(before, kube.MergeFromWithOptimisticLock{}))
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("NodePool %s: %w", pool.Name, err)
}
