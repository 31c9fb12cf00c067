package activities

import (
	"fmt"
	"math"
	"strings"

	"github.com/tenon-sh/tenon/workflows"
)

// A sweep ends nodes on its own conclusion, and a conclusion may be wrong for all nodes at once: custom resource
// definitions that were deleted and made again leave a cluster without claims, and a second cluster of the same name
// shows instances whose claims are elsewhere. So one sweep ends few nodes, and none where claims have vanished at once.

const (
	// SweepMost is the default of Config.SweepMost.
	SweepMost = 0.1
	// minSweep is how many nodes a sweep may end however few there are.
	minSweep = 3
)

// sweepMost is how many of so many nodes one sweep may end.
func sweepMost(share float64, nodes int) int {
	return max(minSweep, int(math.Ceil(share*float64(nodes))))
}

// spend takes so many nodes from what the sweep may still end, and returns how many of them are too many.
func (s *sweep) spend(nodes int) (over int) {
	over = max(0, nodes-s.most)
	s.most -= nodes - over
	s.result.Withheld += over
	return over
}

// vanished stops the sweep from ending anything where the claims of most workflows are gone that belong to this cluster.
// Those of a cluster that had its name before do not count, nor those whose instances are gone as well. A share of 1 says
// that it is meant.
func (s *sweep) vanished() {
	if s.share >= 1 {
		return
	}
	gone, lives := 0, 0
	for id, listed := range s.listed {
		name, isLife := strings.CutPrefix(id, s.cluster.NodeClaimID(""))
		if !isLife || !s.endsNode(listed) {
			continue
		}
		lives++
		if s.now.Sub(listed.started) >= adoptAge && !s.owned(name, listed) {
			gone++
		}
	}
	if gone > s.most && 2*gone > lives {
		s.result.Stopped = fmt.Sprintf("the NodeClaims of %d of %d running NodeClaim workflows are gone; no node is ended for that. "+
			"Bring the claims back, or run the worker with --sweep-most=1 if their nodes are to go", gone, lives)
	}
}

// endsNode says that a node of this cluster ends with a workflow. Where another controller has had the cluster for a while,
// claims have gone together with their instances, and only their workflows are left.
func (s *sweep) endsNode(listed listedWorkflow) bool {
	return !s.foreign(listed) && (listed.instance == "" || s.alive[listed.instance])
}

// foreign says that a workflow belongs to another cluster of this one's name.
func (s *sweep) foreign(listed listedWorkflow) bool {
	return listed.clusterUID != "" && s.clusterUID != "" && listed.clusterUID != s.clusterUID
}

// owned says that the claim is there whose life a workflow is. Workflows of before there were memos go by the name.
func (s *sweep) owned(name string, listed listedWorkflow) bool {
	claim := s.named[name]
	return claim != nil && (listed.uid == "" || listed.uid == string(claim.UID))
}

// reasonGone is why the life of a claim ends that is gone.
func (s *sweep) reasonGone(listed listedWorkflow) string {
	if s.foreign(listed) {
		return workflows.ReasonClusterGone
	}
	return workflows.ReasonClaimGone
}
