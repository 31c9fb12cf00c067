package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Provisioning turns pending pods into launches, for ever. A signal that pods are pending starts a plan. The activity itself
// waits for the end of the burst, because the mirror sees every pod and this history need not. Each launch group of the plan
// becomes a Launch workflow. While nothing is pending, Provisioning waits in one place and costs nothing.
func Provisioning(ctx workflow.Context, state ProvisioningInput) error {
	p := provisioning{ProvisioningInput: state, refused: workflow.GetSignalChannel(ctx, SignalCapacityRefused),
		pending: workflow.GetSignalChannel(ctx, SignalPodsPending)}
	if p.Series == "" {
		p.Series = newSeries(ctx)
	}
	if err := p.listen(ctx); err != nil {
		return err
	}
	return forEver(ctx, &p)
}

type provisioning struct {
	ProvisioningInput
	pending, refused workflow.ReceiveChannel
}

func (p *provisioning) again(ctx workflow.Context) error {
	return workflow.NewContinueAsNewError(ctx, Provisioning, p.ProvisioningInput)
}

// wait returns when pods may be pending or offerings were refused.
func (p *provisioning) wait(ctx workflow.Context) error {
	err := workflow.Await(ctx, func() bool {
		return p.Pending || p.pending.Len() > 0 || p.refused.Len() > 0 || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	})
	if err != nil {
		return err
	}
	p.receive(ctx)
	return nil
}

// receive moves every buffered signal into the state, so that none is lost when the workflow continues as new.
func (p *provisioning) receive(ctx workflow.Context) {
	var announced PodsPending
	for p.pending.ReceiveAsync(&announced) {
		p.Pending = p.Pending || !p.seen(ctx, announced.Seen)
		if announced.SeenVersion != "" {
			// A later plan may still have looked at an older state, on another worker.
			p.Pending = p.Pending || announced.SeenVersion != p.SeenVersion
			p.SeenVersion = NewerVersion(p.SeenVersion, announced.SeenVersion)
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
	if over := len(p.Unavailable) - maxUnavailable; over > 0 {
		p.Unavailable = p.Unavailable[over:]
	}
}

// clocksDiffer marks workflows that plan again for pods announced more than maxBurst before the last plan.
const clocksDiffer = "clocks-differ"

// maxBurst is how long before its plan a burst may have begun to be announced.
const maxBurst = 15 * time.Second

// seen reports whether the last plan has looked at the pods announced at this time: a burst is announced again and again
// while the plan waits for its end. The two times may come from the clocks of two workers, or from one that was stepped in
// between. If they are further apart than a burst lasts, seen assumes that, since it is better to plan once too often. If
// they are not, the pods are announced once more in ten seconds.
func (p *provisioning) seen(ctx workflow.Context, announced time.Time) bool {
	before := p.Looked.Sub(announced)
	switch {
	case announced.IsZero() || before <= 0:
		return false
	case before > maxBurst:
		return workflow.GetVersion(ctx, clocksDiffer, workflow.DefaultVersion, 1) == workflow.DefaultVersion
	}
	return true
}

// NewerVersion returns the later of two resource versions. It ignores one that is not valid, as somebody may have sent it.
func NewerVersion(a, b string) string {
	if _, err := resourceversion.CompareResourceVersion(b, b); err != nil {
		return a
	}
	if order, err := resourceversion.CompareResourceVersion(a, b); err == nil && order > 0 {
		return a
	}
	return b
}

// act makes one plan and starts its launches, if pods are pending.
func (p *provisioning) act(ctx workflow.Context) error {
	if !p.Pending {
		return nil
	}
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

// details describes the newest plan and, if it is another, the last one that launched something.
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
