package disrupt

import (
	"cmp"
	"fmt"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// unapproved says that a person has to approve before a node goes for a reason, and has not; nil if nobody has to, or somebody
// has.
func unapproved(in *model.Input, n *model.Node, pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	if !pool.NeedsApproval(reason) {
		return nil
	}
	found := karpv1.ApprovalOf(n.Approvals, reason, n.DriftHash, in.Snapshot.Time)
	switch {
	case found != nil && found.State == karpv1.ApprovalRejected:
		return &model.Verdict{Cause: model.CauseApproval, Until: found.Until, Message: fmt.Sprintf("%s rejected it until %s: %s", cmp.Or(found.By, "somebody"),
			lifecycle.Clock(found.Until), cmp.Or(found.Note, "no reason was given"))}
	case found != nil && found.State == karpv1.ApprovalGranted, in.Proposing:
		return nil
	case found != nil && found.State == karpv1.ApprovalWaiting:
		return &model.Verdict{Cause: model.CauseApproval, Until: found.Until, Message: fmt.Sprintf("it waits for approval since %s; tenon approve %s",
			lifecycle.Clock(found.Since), cmp.Or(n.Name, n.Claim))}
	}
	return &model.Verdict{Cause: model.CauseApproval, Message: fmt.Sprintf("its NodePool wants approval (%s), for which people are asked when nothing else keeps it", karpv1.ApprovalAnnotationKey)}
}
