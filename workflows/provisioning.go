package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tenon-sh/tenon/cloud"
)

// The signals Provisioning listens to. Both are facts, and both may be repeated or lost without harm: the starter says
// again that pods are pending for as long as they are.
const (
	// SignalPodsPending carries a PodsPending: there are pods without a node, or there is less room than buffers want, or
	// there are fewer nodes than a static pool has replicas.
	SignalPodsPending = "pods-pending"
	// SignalCapacityRefused carries a CapacityRefused: what a launch could not get.
	SignalCapacityRefused = "capacity-refused"
)

// UnavailableFor is how long an offering that was refused is left alone. Karpenter's offering cache keeps the same time.
const UnavailableFor = 3 * time.Minute

// mostUnavailable bounds the refused offerings Provisioning remembers, so that its state stays well below the payload
// limits. Beyond it the oldest are forgotten: the worst that follows is one more refusal.
const mostUnavailable = 400

// ProvisioningInput is the durable state of Provisioning, carried from run to run.
type ProvisioningInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which tells it from another cluster of its name; empty
	// where whoever started this did not know it.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Series tells this Provisioning from an earlier one that was terminated, so that plan ids never repeat. It is
	// the first run's id, which a reset does not change, set by the workflow itself.
	Series string `json:"series,omitempty"`
	// Round counts the plans made.
	Round int `json:"round"`
	// Pending says that pods have been announced which no plan has looked at yet.
	Pending bool `json:"pending,omitempty"`
	// SeenVersion is the resource version of the last NodeClaim a plan created. Whoever plans next must have seen it.
	SeenVersion string `json:"seenVersion,omitempty"`
	// Unavailable are the offerings that were refused lately.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// Grown are pods that still wait though nodes came up for them.
	Grown []Grown `json:"grown,omitempty"`
	// Looked is when the last plan looked at the pods. What was announced before then it has seen.
	Looked time.Time `json:"looked,omitzero"`
	// Last is the note of the last plan, for people. Launched is the note of the last plan that created claims, and
	// LaunchedAt when it was made, where that is another one.
	Last       string    `json:"last,omitempty"`
	Launched   string    `json:"launched,omitempty"`
	LaunchedAt time.Time `json:"launchedAt,omitzero"`
}

// PodsPending is what SignalPodsPending carries. Nothing at all is understood too, as pending now.
type PodsPending struct {
	// Seen is when the pods were looked at that are announced.
	Seen time.Time `json:"seen,omitzero"`
	// SeenVersion is the resource version of the newest NodeClaim that was looked at, where what is announced follows
	// from its deletion: whoever plans must have seen that.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// Unavailable is an offering that is left alone until a moment.
type Unavailable struct {
	cloud.OfferingKey
	Until time.Time `json:"until"`
}

// MostGrown bounds the pods whose growth Provisioning remembers, so that its state stays small. Those for which the most
// nodes were made are kept.
const MostGrown = 200

// Grown is a pod that still waits though nodes came up for it (plan.Growth).
type Grown struct {
	// Pod is the pod's UID.
	Pod   string `json:"pod"`
	Nodes int    `json:"nodes"`
	// Until is when the last pause ends that growing for the pod made, Seconds how long it is, and At how many nodes there
	// were when it began.
	Until   time.Time `json:"until,omitzero"`
	Seconds int       `json:"seconds,omitempty"`
	At      int       `json:"at,omitempty"`
	// Basis tells the pools from what they were before.
	Basis string `json:"basis,omitempty"`
}

// CapacityRefused is what SignalCapacityRefused carries.
type CapacityRefused struct {
	Group   string              `json:"group"`
	Refused []cloud.OfferingKey `json:"refused,omitempty"`
	// Quiet says that no pods were given back with it: it is to be remembered, and nothing to be planned.
	Quiet bool `json:"quiet,omitempty"`
}

// PlanInput asks for one plan.
type PlanInput struct {
	// Plan is the plan's id: a retry has the same, and finds the claims an earlier try created by it.
	Plan string `json:"plan"`
	// SeenVersion is a resource version that the plan has to have seen, and ClusterUID the cluster it is of.
	SeenVersion string        `json:"seenVersion,omitempty"`
	ClusterUID  string        `json:"clusterUID,omitempty"`
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// Grown is what the last plan returned.
	Grown []Grown `json:"grown,omitempty"`
}

// PlanResult is what a plan has created.
type PlanResult struct {
	Groups      []LaunchGroup `json:"groups,omitempty"`
	SeenVersion string        `json:"seenVersion,omitempty"`
	// ClusterUID is the cluster that was planned for; empty where nobody knows.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Anew says that the version which the plan was to have seen will never come: it is of another cluster of this name, or
	// of this one before it was restored.
	Anew bool `json:"anew,omitempty"`
	// Looked is when the snapshot was taken that was planned over; zero where nobody knows.
	Looked time.Time `json:"looked,omitzero"`
	// Grown are pods that still wait though nodes came up for them.
	Grown []Grown `json:"grown,omitempty"`
	// Again says that this plan stopped before the end: another one is due at once.
	Again bool `json:"again,omitempty"`
	// Note says in a few lines what was planned and which pods were left, and why.
	Note string `json:"note,omitempty"`
}

// LaunchGroup is a group of alike claims that are launched together.
type LaunchGroup struct {
	Group    string     `json:"group"`
	NodePool string     `json:"nodePool,omitempty"`
	Claims   []ClaimRef `json:"claims"`
	// Unavailable are the offerings that the claims allow and the launch is to leave alone, since they were refused or
	// taken back lately. What one worker's provider remembers, the worker that launches need not know.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
}

// ClaimRef is a NodeClaim: names are for people, the UID tells it from another of the same name.
type ClaimRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// Provisioning turns pending pods into launches, for ever. A signal that pods are pending starts a plan; the plan
// itself waits until the burst has stopped arriving, as the mirror sees every pod and this history need not; each
// launch group of the plan becomes a Launch workflow. While nothing is pending it waits at one place and costs nothing.
func Provisioning(ctx workflow.Context, state ProvisioningInput) error {
	p := provisioning{ProvisioningInput: state, refused: workflow.GetSignalChannel(ctx, SignalCapacityRefused),
		pending: workflow.GetSignalChannel(ctx, SignalPodsPending)}
	if p.Series == "" {
		p.Series = newSeries(ctx)
	}
	if err := p.listen(ctx); err != nil {
		return err
	}
	for {
		workflow.SetCurrentDetails(ctx, p.details())
		if err := workflow.Await(ctx, func() bool {
			return p.Pending || p.pending.Len() > 0 || p.refused.Len() > 0 || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		}); err != nil {
			return err
		}
		p.receive(ctx)
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			// Who has asked gets an answer first.
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
				return err
			}
			p.receive(ctx)
			return workflow.NewContinueAsNewError(ctx, Provisioning, p.ProvisioningInput)
		}
		if !p.Pending {
			continue
		}
		if err := p.plan(ctx); err != nil {
			return err
		}
	}
}

type provisioning struct {
	ProvisioningInput
	pending, refused workflow.ReceiveChannel
}

// receive moves every buffered signal into the state, so that none is lost when the workflow continues as new.
func (p *provisioning) receive(ctx workflow.Context) {
	var announced PodsPending
	for p.pending.ReceiveAsync(&announced) {
		p.Pending = p.Pending || !p.seen(ctx, announced.Seen)
		if announced.SeenVersion != "" {
			// A plan that looked later may still have looked at an older state, on another worker.
			p.Pending = p.Pending || announced.SeenVersion != p.SeenVersion
			p.SeenVersion = newerVersion(p.SeenVersion, announced.SeenVersion)
		}
		announced = PodsPending{}
	}
	now := workflow.Now(ctx)
	kept := p.Unavailable[:0]
	for _, u := range p.Unavailable {
		if u.Until.After(now) {
			kept = append(kept, u)
		}
	}
	p.Unavailable = kept
	var refused CapacityRefused
	for p.refused.ReceiveAsync(&refused) {
		p.Pending = p.Pending || !refused.Quiet
		for _, key := range refused.Refused {
			p.Unavailable = append(p.Unavailable, Unavailable{OfferingKey: key, Until: now.Add(UnavailableFor)})
		}
		refused = CapacityRefused{}
	}
	if over := len(p.Unavailable) - mostUnavailable; over > 0 {
		p.Unavailable = p.Unavailable[over:]
	}
}

// clocksDiffer marks workflows that plan for what was announced longer before the last plan than a burst lasts.
const clocksDiffer = "clocks-differ"

// burstMost is how long before the plan that waits for it a burst may have begun to be announced.
const burstMost = 15 * time.Second

// seen says that the last plan has looked at the pods that were announced then: a burst is announced again and again while
// the plan waits for its end. The two moments may be of the clocks of two workers, or of one that was stepped in between.
// Where they are further apart than a burst lasts, that is what they are, and pods are rather planned for once too often.
// Where they are not, the pods are announced once more in ten seconds.
func (p *provisioning) seen(ctx workflow.Context, announced time.Time) bool {
	before := p.Looked.Sub(announced)
	switch {
	case announced.IsZero() || before <= 0:
		return false
	case before > burstMost:
		return workflow.GetVersion(ctx, clocksDiffer, workflow.DefaultVersion, 1) == workflow.DefaultVersion
	}
	return true
}

// newerVersion returns the later of two resource versions. One that is none, as somebody may have sent it, is not waited for.
func newerVersion(a, b string) string {
	if _, err := resourceversion.CompareResourceVersion(b, b); err != nil {
		return a
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order > 0 {
		return a
	}
	return b
}

// plan makes one plan and starts its launches.
func (p *provisioning) plan(ctx workflow.Context) error {
	p.Round++
	p.Pending = false
	id := fmt.Sprintf("%.8s-%d", p.Series, p.Round)
	result, err := PlanActivity.Run(ctx, PlanInput{Plan: id, SeenVersion: p.SeenVersion, ClusterUID: p.ClusterUID, Unavailable: p.Unavailable, Grown: p.Grown},
		"plan "+id)
	if err != nil {
		return err
	}
	if result.Anew || result.SeenVersion != "" {
		p.SeenVersion = result.SeenVersion
	}
	if result.ClusterUID != "" {
		p.ClusterUID = result.ClusterUID
	}
	p.Pending = result.Again
	p.Looked, p.Last = result.Looked, result.Note
	if !result.Looked.IsZero() {
		p.Grown = result.Grown
	}
	if len(result.Groups) > 0 {
		p.Launched, p.LaunchedAt = result.Note, workflow.Now(ctx)
	}
	return startLaunches(ctx, p.Cluster, p.ClusterUID, result.Groups)
}

// startLaunches starts one Launch per group and returns when all of them are running.
func startLaunches(ctx workflow.Context, cluster Cluster, clusterUID string, groups []LaunchGroup) error {
	started := make([]workflow.Future, 0, len(groups))
	for _, group := range groups {
		child := workflow.ExecuteChildWorkflow(LaunchOptions(cluster, group).child(ctx), Launch, LaunchInput{Cluster: cluster, ClusterUID: clusterUID, LaunchGroup: group})
		started = append(started, child.GetChildWorkflowExecution())
	}
	for _, child := range started {
		if err := child.Get(ctx, nil); err != nil && !alreadyStarted(err) {
			return fmt.Errorf("start launch: %w", err)
		}
	}
	return nil
}

// details are what a person reads: the newest plan, and beside it the last one that launched something.
func (p *provisioning) details() string {
	details := fmt.Sprintf("Waiting for pending pods. %d plans made.\n", p.Round)
	if p.Last != "" {
		details += "\n**Last plan**\n\n" + p.Last + "\n"
	}
	if p.Launched != "" && p.Launched != p.Last {
		details += "\n**Last plan that launched something**, " + p.LaunchedAt.UTC().Format(time.RFC3339) + "\n\n" + p.Launched + "\n"
	}
	if len(p.Unavailable) > 0 {
		details += fmt.Sprintf("\n%d offerings were refused within the last %s and are left alone.\n", len(p.Unavailable), UnavailableFor)
	}
	return details
}
