package activities

import (
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// passLength is how long one Evict lasts at most; the workflow starts the next.
	passLength = 30 * time.Minute
	// settleFirst and settleNext are how long blockers have to stay the same before the workflow is told: briefly the first
	// time, so that a person sees them soon; longer afterwards, so that a rollout under a budget does not fill the history.
	settleFirst = 5 * time.Second
	settleNext  = 30 * time.Second
	// settleVolumes is how long detaching volumes may take before it is reported, if nothing else blocks.
	settleVolumes = 20 * time.Second
	// bindingSettle is the time between the cordon and the last check of the pods: the kube-scheduler may have been binding
	// a pod to the node at the moment of the cordon.
	bindingSettle = time.Second
	// deregistration is how long a node from which pods were evicted stays at least, so that load balancers have taken
	// note of the label (Karpenter's minimum drain time).
	deregistration = 5 * time.Second
	// largeFirst is how long pods that are easy to place stay after the deletion of their NodeClaim, so that the large pods
	// of all nodes that are removed together are placed before them. The node stays nearly as long in any case.
	largeFirst = 6 * time.Second
	// backoffFirst and maxBackoff bound the pause between two requests for one pod.
	backoffFirst = 100 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// requestsAtOnce bounds the requests in flight for one node.
	requestsAtOnce = 8
	// minRest is how far off the next due time has to be for the workflow to wait instead of the pass.
	minRest = time.Minute
)

// pass is one run of Evict.
type pass struct {
	*Drains
	in       workflows.EvictInput
	node     *corev1.Node
	interner *plan.Interner
	pods     nodeWatch
	volumes  volumeWatch

	// begun is when Temporal started this attempt, and local the same moment on this machine's clock.
	begun, local time.Time
	// started is when the first attempt began, cordoned when this one had verified the cordon.
	started, cordoned time.Time
	// smallFrom is when pods that are easy to place may be evicted; zero means at once.
	smallFrom time.Time
	// ends is when the instance of a node that ends with notice will end, as far as is known; zero for other nodes.
	ends    time.Time
	evicted atomic.Int64

	evictions, deletions map[types.UID]*request
	budgets              budgetLists
	digest               string
	digestSince          time.Time
	// blockers holds all blockers; result names those that are shown to people.
	blockers []workflows.Blocker
	result   workflows.EvictResult
}

// request is the state of asking for the removal of one pod.
type request struct {
	next    time.Time
	pause   time.Duration
	counted bool
	blocker *workflows.Blocker
}

// situation is a step of the plan and what belongs to the node besides its pods.
type situation struct {
	plan.DrainStep
	volumes []workflows.Blocker
	// unplaced are the pods that wait for a place on another node.
	unplaced []workflows.Blocker
	// ready is when the node may count as drained if nothing changes; zero while something is left.
	ready time.Time
}

func newPass(d *Drains, in workflows.EvictInput, node *corev1.Node, begun, local time.Time, progress evictProgress) *pass {
	p := &pass{Drains: d, in: in, node: node, interner: new(plan.Interner), begun: begun, local: local,
		pods:      nodeWatch{client: d.Client, node: node},
		volumes:   volumeWatch{client: d.Client, node: node.Name, shown: d.Attached},
		started:   progress.Started,
		evictions: map[types.UID]*request{}, deletions: map[types.UID]*request{}, budgets: budgetLists{client: d.Client}}
	p.evicted.Store(int64(progress.Evicted))
	p.cordoned = p.now()
	p.digestSince = p.cordoned
	return p
}

// now returns the time by Temporal's clock, by which the deadline was set. A machine whose own clock is wrong or jumps must
// not delete pods early.
func (p *pass) now() time.Time { return p.begun.Add(time.Since(p.local)) }

// past reports whether the deadline has come.
func (p *pass) past(now time.Time) bool {
	return !p.in.Deadline.IsZero() && !now.Before(p.in.Deadline)
}

func requestOf(requests map[types.UID]*request, uid types.UID) *request {
	r := requests[uid]
	if r == nil {
		r = &request{pause: backoffFirst}
		requests[uid] = r
	}
	return r
}

// refused reports whether a budget has refused the pod before.
func (r *request) refused() bool { return r.blocker != nil && r.blocker.Cause == blockedByBudget }

// take records an answer. A pod whose removal was accepted is asked for again only if nothing happens for long.
func (r *request) take(a answer, now time.Time) {
	r.blocker = a.blocker
	if a.accepted {
		r.next = now.Add(maxBackoff)
		return
	}
	r.next = now.Add(r.pause)
	r.pause = min(2*r.pause, maxBackoff)
}

// evictProgress is passed in heartbeats from one attempt to the next.
type evictProgress struct {
	Started time.Time `json:"started"`
	Evicted int       `json:"evicted"`
}
