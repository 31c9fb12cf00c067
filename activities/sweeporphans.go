package activities

import (
	"context"
	"fmt"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// orphanAge is how old an instance without a claim must be before it counts as orphaned: thirty seconds, as in Karpenter.
const orphanAge = 30 * time.Second

// orphans terminates instances that neither a claim nor a running NodeClaim workflow has, and that no launch will still
// hand out.
func (s *sweep) orphans(ctx context.Context, instances []cloud.Instance) {
	held := map[string]bool{}
	for _, listed := range s.listed {
		held[listed.instance] = true
	}
	var suspects []cloud.Instance
	launching := map[string]bool{}
	for _, instance := range instances {
		if s.claims[instance.ProviderID] != nil || held[instance.ID] || s.now.Sub(instance.LaunchTime) < orphanAge {
			continue
		}
		if _, known := launching[instance.LaunchGroup]; !known && instance.LaunchGroup != "" {
			running, err := s.running(ctx, s.cluster.LaunchID(instance.LaunchGroup))
			s.fail("instance "+instance.ID, err)
			launching[instance.LaunchGroup] = running || err != nil
		}
		if !launching[instance.LaunchGroup] {
			suspects = append(suspects, instance)
		}
	}
	if len(suspects) == 0 {
		return
	}
	// By now, an instance that a Launch handed out before it ended is recorded on a claim, or a claim of the launch group
	// still lacks one.
	claimed, waiting := map[string]bool{}, map[string]bool{}
	err := s.objects.eachClaim(ctx, nil, func(claim *karpv1.NodeClaim) {
		if claim.Status.ProviderID == "" {
			waiting[claim.LaunchGroup()] = true
		}
		claimed[claim.Status.ProviderID] = true
	})
	if err != nil {
		s.fail("instances nobody owns", err)
		return
	}
	var ids []string
	for _, instance := range suspects {
		if !claimed[instance.ProviderID] && !waiting[instance.LaunchGroup] {
			ids = append(ids, instance.ID)
		}
	}
	if len(ids) > s.most && 2*len(ids) > len(instances) && s.share < 1 {
		s.result.Stopped = fmt.Sprintf("%d of %d instances have neither a NodeClaim nor a workflow; none is terminated. They may be another cluster's of this name. "+
			"Run the worker with --sweep-most=1 if they are to go", len(ids), len(instances))
		return
	}
	ids = ids[:len(ids)-s.spend(len(ids))]
	if len(ids) == 0 {
		return
	}
	if err := s.cloud.Terminate(ctx, ids); err != nil {
		s.fail("instances nobody owns", cloudFailure("terminate", err))
		return
	}
	s.result.Terminated = ids
}
