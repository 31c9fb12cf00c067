package activities

import (
	"fmt"
	"math"
	"strings"

	"github.com/tenon-sh/tenon/workflows"
)

// A sweep ends nodes on its own conclusion, and a conclusion may be wrong for all nodes at once: if custom resource
// definitions are deleted and created again, the cluster has no claims, and a second cluster of the same name shows
// instances whose claims are elsewhere. So one sweep ends few nodes, and terminates none if most claims have vanished at
// once.

const (
	// SweepMost is the default of Config.SweepMost.
	SweepMost = 0.1
	// minSweep is how many nodes a sweep may end even if there are only few.
	minSweep = 3
)

// sweepMost returns how many of the given number of nodes one sweep may end.
func sweepMost(share float64, nodes int) int {
	return max(minSweep, int(math.Ceil(share*float64(nodes))))
}

// spend deducts nodes from the number that the sweep may still end, and returns how many of them exceed it.
func (s *sweep) spend(nodes int) (over int) {
	over = max(0, nodes-s.most)
	s.most -= nodes - over
	s.result.Withheld += over
	return over
}

// vanished stops the sweep from ending workflows and terminating orphaned instances if the claims of most workflows of this
// cluster are gone. Workflows of an earlier cluster of the same name do not count, nor do those whose instances are gone as
// well. A share of 1 disables the check.
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

// endsNode reports whether a node of this cluster ends with a workflow. After another controller has managed the cluster
// for a while, claims may be gone together with their instances, and only their workflows are left.
func (s *sweep) endsNode(listed listedWorkflow) bool {
	return !s.foreign(listed) && (listed.instance == "" || s.alive[listed.instance])
}

// foreign reports whether a workflow belongs to another cluster of the same name.
func (s *sweep) foreign(listed listedWorkflow) bool {
	return listed.clusterUID != "" && s.clusterUID != "" && listed.clusterUID != s.clusterUID
}

// owned reports whether the claim exists whose life a workflow is. A workflow without a memo is matched by name only.
func (s *sweep) owned(name string, listed listedWorkflow) bool {
	claim := s.named[name]
	return claim != nil && (listed.uid == "" || listed.uid == string(claim.UID))
}

// reasonGone returns the reason for ending the workflow of a claim that is gone.
func (s *sweep) reasonGone(listed listedWorkflow) string {
	if s.foreign(listed) {
		return workflows.ReasonClusterGone
	}
	return workflows.ReasonClaimGone
}
