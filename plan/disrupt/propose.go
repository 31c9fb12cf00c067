package disrupt

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// Approvals are what people are to be asked, and what they need not be asked any more.
type Approvals struct {
	// Proposals are decisions for which people have not been asked yet.
	Proposals []Proposal
	// Outdated says, by the id of an approval that waits, why its decision no longer holds.
	Outdated map[string]string
}

// Proposal is a decision that a person has to approve.
type Proposal struct {
	// ID is the same whenever the same nodes are to go for the same reason and the same drift.
	ID string
	model.Command
	// For is the DriftHash of the only node if the reason is drift.
	For string
	// Does says in one sentence what will be done.
	Does string
}

// Propose returns for which decisions people have to be asked, beside what is decided already and needs no approval. It decides
// as if everything were approved, without regard to budgets: these hold for what has been approved. So all decisions that wait
// at the same time fit together.
func Propose(in model.Input, decided model.Disruption) Approvals {
	if !asks(in.Snapshot) {
		return Approvals{}
	}
	h := suppose(in, decided)
	found := Approvals{Outdated: map[string]string{}}
	asked := map[string]bool{} // the nodes about which people are asked
	for _, n := range in.Snapshot.Nodes {
		for _, a := range n.Approvals {
			if a.State != karpv1.ApprovalWaiting || !in.Snapshot.Time.Before(a.Until) {
				continue
			}
			asked[n.Key()] = true
			if why := h.outdated(a); why != "" {
				found.Outdated[a.ID] = why
			}
		}
	}
	for _, command := range h.found.Commands {
		for _, one := range h.apart(command) {
			if !slices.ContainsFunc(one.Nodes, func(key string) bool { return asked[key] }) && h.lacksApproval(one) {
				found.Proposals = append(found.Proposals, h.proposal(one))
			}
		}
	}
	return found
}

// Outdated says why a decision that people were asked to approve no longer holds; empty if it holds. It does not matter that
// other nodes may replace its nodes now than were named then.
func Outdated(in model.Input, decided model.Disruption, asked karpv1.Approval) string {
	return suppose(in, decided).outdated(asked)
}

// asks says whether people may have to be asked, or have been asked, about any node.
func asks(snapshot *model.Snapshot) bool {
	return slices.ContainsFunc(snapshot.NodePools, func(pool *karpv1.NodePool) bool { return pool.Annotations[karpv1.ApprovalAnnotationKey] != "" }) ||
		slices.ContainsFunc(snapshot.Nodes, func(n *model.Node) bool { return len(n.Approvals) > 0 })
}

// supposition is what would be decided if everything were approved.
type supposition struct {
	in model.Input
	// now is what is decided already.
	now   model.Disruption
	found model.Disruption
	nodes map[string]*model.Node
	pools map[string]*karpv1.NodePool
	rates rates
}

func suppose(in model.Input, decided model.Disruption) *supposition {
	h := &supposition{in: in, now: decided, nodes: make(map[string]*model.Node, len(in.Snapshot.Nodes)), pools: map[string]*karpv1.NodePool{}, rates: newRates(&in)}
	for _, n := range in.Snapshot.Nodes {
		h.nodes[n.Key()] = n
	}
	going := map[string]bool{}
	for i := range decided.Commands {
		for _, key := range decided.Commands[i].Nodes {
			going[key] = true
		}
	}
	as := in
	as.Proposing, as.Rate, as.Begun, as.Settling = true, nil, nil, nil
	as.Snapshot = with(in.Snapshot, func(n *model.Node) bool { return going[n.Key()] }, func(n *model.Node) { n.Deleting = true })
	as.Snapshot.NodePools = slices.Clone(in.Snapshot.NodePools)
	for i, pool := range as.Snapshot.NodePools {
		h.pools[pool.Name] = pool
		as.Snapshot.NodePools[i] = unlimited(pool)
	}
	h.found = Disrupt(as)
	return h
}

// unlimited returns a pool whose nodes need approval as if nothing limited how many of them may be disrupted at once.
func unlimited(pool *karpv1.NodePool) *karpv1.NodePool {
	if pool.Annotations[karpv1.ApprovalAnnotationKey] == "" {
		return pool
	}
	changed := *pool
	changed.Annotations = maps.Clone(pool.Annotations)
	delete(changed.Annotations, karpv1.DisruptionRateAnnotationKey)
	delete(changed.Annotations, karpv1.WaitForReadyAnnotationKey)
	changed.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	return &changed
}

// apart returns a command that empties several nodes as one for each, so that people decide about each by itself.
func (h *supposition) apart(command model.Command) []model.Command {
	if command.Reason != karpv1.DisruptionReasonEmpty || len(command.Nodes) < 2 {
		return []model.Command{command}
	}
	all := make([]model.Command, 0, len(command.Nodes))
	for _, key := range command.Nodes {
		one := command
		one.Nodes = []string{key}
		one.SavesPerHour, _ = h.rates.of(h.nodes[key])
		one.Zone = h.nodes[key].Zone
		all = append(all, one)
	}
	return all
}

// lacksApproval says whether a node of a command has to be approved and is not.
func (h *supposition) lacksApproval(command model.Command) bool {
	return slices.ContainsFunc(command.Nodes, func(key string) bool {
		n := h.nodes[key]
		return h.pools[n.Pool] != nil && unapproved(&h.in, n, h.pools[n.Pool], command.Reason) != nil
	})
}

func (h *supposition) proposal(command model.Command) Proposal {
	p := Proposal{Command: command, Does: does(command)}
	if command.Reason == karpv1.DisruptionReasonDrifted && len(command.Nodes) == 1 {
		p.For = h.nodes[command.Nodes[0]].DriftHash
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(string(command.Reason) + "/" + p.For))
	for _, key := range slices.Sorted(slices.Values(command.Nodes)) {
		_, _ = hash.Write([]byte("/" + key + "/" + string(h.nodes[key].ClaimUID)))
	}
	p.ID = fmt.Sprintf("a%08x", hash.Sum32())
	return p
}

// does says in one sentence what a command does.
func does(command model.Command) string {
	text := "remove " + strings.Join(command.Nodes, ", ")
	var comes []string
	for i := range command.Replacements {
		claim := &command.Replacements[i]
		comes = append(comes, strings.TrimSpace(fmt.Sprintf("%s %s", claim.CapacityType, strings.Join(claim.InstanceTypes[:min(1, len(claim.InstanceTypes))], ""))))
	}
	if len(comes) > 0 {
		text += ", after launching " + strings.Join(comes, ", ")
	}
	if command.Why != "" {
		text += ": " + command.Why
	} else if command.SavesPerHour > 0 {
		text += fmt.Sprintf(": saves %s an hour", cloud.Money(command.Zone, command.SavesPerHour))
	}
	return text
}

// outdated says why the decision of an approval no longer holds; empty if it holds. What passes by itself does not end it.
func (h *supposition) outdated(asked karpv1.Approval) string {
	needed := false
	for _, key := range asked.Claims {
		n := h.nodes[key]
		switch {
		case n == nil || n.Leaving():
			return fmt.Sprintf("NodeClaim %s is gone or is being removed", key)
		case asked.Reason == karpv1.DisruptionReasonDrifted && n.DriftHash != asked.For:
			return fmt.Sprintf("NodeClaim %s no longer has the drift that was to be approved", key)
		}
		if why := h.goesOtherwise(key, asked.Reason); why != "" {
			return why
		}
		pool := h.pools[n.Pool]
		needed = needed || pool != nil && pool.NeedsApproval(asked.Reason)
	}
	if !needed {
		return fmt.Sprintf("approval is not needed any more for %s (%s)", strings.ToLower(string(asked.Reason)), karpv1.ApprovalAnnotationKey)
	}
	for i := range h.found.Verdicts {
		if v := &h.found.Verdicts[i]; v.Reason == asked.Reason && slices.Contains(asked.Claims, v.Node) && ends(v) {
			return fmt.Sprintf("NodeClaim %s stays: %s", v.Node, v.Message)
		}
	}
	return ""
}

// goesOtherwise says that a node goes for another reason than the given one, or would if that were approved.
func (h *supposition) goesOtherwise(key string, reason karpv1.DisruptionReason) string {
	for _, command := range slices.Concat(h.now.Commands, h.found.Commands) {
		if command.Reason != reason && slices.Contains(command.Nodes, key) {
			return fmt.Sprintf("NodeClaim %s is to go for being %s instead", key, strings.ToLower(string(cmp.Or(command.Reason, "removed"))))
		}
	}
	return ""
}

// ends says that what keeps a node means that it is not to go at all, and not only that it has to wait.
func ends(v *model.Verdict) bool {
	switch v.Cause {
	case model.CauseNone, model.CausePolicy, model.CauseLeaving, model.CauseApproval:
		return true
	case model.CausePrice, model.CauseRoom, model.CauseBuffer:
		// Drift and expiry do not end by themselves: room may be found later.
		return v.Reason == karpv1.DisruptionReasonUnderutilized || v.Reason == karpv1.DisruptionReasonEmpty
	}
	return false
}
