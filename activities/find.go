package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.temporal.io/sdk/activity"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// finder finds the instances of a launch whose reply was lost.
type finder struct {
	cluster    workflows.Cluster
	objects    objects
	mirror     Mirror
	cloud      cloud.Provider
	executions executions
}

// FindInstances returns the instances of a launch group that no claim has, and the claims that have no instance.
func (f *finder) FindInstances(ctx context.Context, in workflows.FindInstancesInput) (workflows.Found, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	until := time.Now()
	if in.Settle {
		// Earlier attempts' waiting counts: otherwise, with a worker that keeps dying, the wait would never end.
		info := activity.GetInfo(ctx)
		until = until.Add(settleFor - info.StartedTime.Sub(info.ScheduledTime))
	}
	search := search{free: map[string]bool{}, waiting: map[string]bool{}}
	for {
		found, err := f.unclaimed(ctx, in, search)
		if err != nil || len(found.Instances) >= len(found.Claims) || !time.Now().Before(until) {
			return found, err
		}
		if err := smithytime.SleepWithContext(ctx, goneEvery); err != nil {
			return found, fmt.Errorf("look for launch group %s: %w", in.Group, err)
		}
	}
}

// unclaimed returns the instances of a launch group that no claim has, and those of the given claims that have no instance.
// An instance belongs to the claim that names it, or whose running workflow was started with it. unclaimed reads the
// instances first, so that it sees an instance that is handed out meanwhile with its claim. It asks the API server only
// where the mirror does not show that an instance or a claim is served, and once for each: only the Launch that asks hands
// them out.
func (f *finder) unclaimed(ctx context.Context, in workflows.FindInstancesInput, known search) (workflows.Found, error) {
	there, err := f.cloud.Instances(ctx, cloud.Query{LaunchGroup: in.Group})
	if err != nil {
		return workflows.Found{}, cloudFailure("look for launch group "+in.Group, err)
	}
	there = slices.DeleteFunc(there, func(instance cloud.Instance) bool { return f.mirror.ClaimByProviderID(instance.ProviderID) != nil })
	if slices.ContainsFunc(there, func(instance cloud.Instance) bool { return !known.free[instance.ID] }) {
		taken, err := f.takenInstances(ctx, in.Group)
		if err != nil {
			return workflows.Found{}, err
		}
		for _, instance := range there {
			known.free[instance.ID] = !taken[instance.ID]
		}
	}
	var found workflows.Found
	for _, instance := range there {
		if known.free[instance.ID] {
			found.Instances = append(found.Instances, reduceInstance(instance))
		}
	}
	for _, ref := range in.Claims {
		if !known.waiting[ref.UID] {
			served, err := f.served(ctx, ref)
			if err != nil {
				return workflows.Found{}, err
			}
			known.waiting[ref.UID] = !served
		}
		if known.waiting[ref.UID] {
			found.Claims = append(found.Claims, ref)
		}
	}
	return found, nil
}

// served reports whether a claim has an instance, or a running workflow that was started with one. A claim that is gone is
// not served.
func (f *finder) served(ctx context.Context, ref workflows.ClaimRef) (bool, error) {
	if shown := f.mirror.Claim(ref.Name); shown != nil && string(shown.UID) == ref.UID && shown.Status.ProviderID != "" {
		return true, nil
	}
	claim, err := f.objects.claim(ctx, ref)
	if err != nil || claim == nil || claim.Status.ProviderID != "" {
		return claim != nil, err
	}
	_, handed, err := f.executions.handedOut(ctx, f.cluster.NodeClaimID(ref.Name))
	return handed, err
}

// takenInstances returns the ids of the instances that claims have.
func (f *finder) takenInstances(ctx context.Context, group string) (map[string]bool, error) {
	taken := map[string]bool{}
	var waiting []string
	err := f.objects.eachClaim(ctx, nil, func(claim *karpv1.NodeClaim) {
		switch {
		case claim.Status.ProviderID != "":
			taken[cloud.InstanceID(claim.Status.ProviderID)] = true
		case claim.LaunchGroup() == group:
			waiting = append(waiting, claim.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	for _, name := range waiting {
		id, handed, err := f.executions.handedOut(ctx, f.cluster.NodeClaimID(name))
		if err != nil {
			return nil, err
		}
		if handed {
			taken[id] = true
		}
	}
	return taken, nil
}

// settleFor is how long FindInstances keeps looking before it concludes that there is nothing: a launch whose reply was
// lost becomes visible well within that time, and the sweep terminates what does not.
const settleFor = 25 * time.Second

// search holds what one FindInstances has read already: instances that no claim has, by id, and claims that have none, by
// UID.
type search struct{ free, waiting map[string]bool }
