package activities

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/internal/logs"
)

// maxTag limits how many instances one sweep names, because EC2 allows few such calls.
const maxTag = 50

// Tags that tell people in the EC2 console what an instance is. Tenon does not need them.
const (
	tagName  = "Name"
	tagClaim = "karpenter.sh/nodeclaim"
)

// nameInstances writes onto instances the names of their node and claim, a few in each sweep. It keeps a Name that the node
// class or a person has set. The tags are for people only, so a failure is only logged.
func (s *sweep) nameInstances(ctx context.Context) {
	ids := make([]string, 0, len(s.instances))
	for id, instance := range s.instances {
		if claim := s.claims[id]; claim != nil && claim.Status.NodeName != "" && instance.Tags[tagClaim] != claim.Name {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids[:min(len(ids), maxTag)] {
		claim := s.claims[id]
		tags := map[string]string{tagClaim: claim.Name}
		if _, named := s.instances[id].Tags[tagName]; !named {
			tags[tagName] = claim.Status.NodeName
		}
		if err := s.cloud.Tag(ctx, s.instances[id].ID, tags); err != nil {
			logs.Of(ctx, s.log).Warn("could not name an instance", zap.String("instance", s.instances[id].ID), zap.String("claim", claim.Name), zap.Error(err))
			return
		}
	}
}
