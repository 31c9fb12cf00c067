package workflows

import (
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// The signals that Provisioning receives. Both report facts and may be repeated or lost without harm: the starter repeats
// that pods are pending for as long as they are.
const (
	// SignalPodsPending carries a PodsPending: pods have no node, buffers have less room than they want, or a static
	// NodePool has fewer nodes than replicas.
	SignalPodsPending = "pods-pending"
	// SignalCapacityRefused carries a CapacityRefused: the offerings that a launch could not get.
	SignalCapacityRefused = "capacity-refused"
)

// UnavailableFor is how long a refused offering is not tried again. Karpenter's offering cache keeps the same time.
const UnavailableFor = 3 * time.Minute

// maxUnavailable limits the refused offerings that Provisioning remembers, so that its state stays well below the payload
// limits. Beyond it the oldest are forgotten; the worst consequence is one more refusal.
const maxUnavailable = 400

// ProvisioningInput is the durable state of Provisioning, carried from run to run.
type ProvisioningInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which distinguishes the cluster from another of the same
	// name. It is empty if it was unknown when the workflow was started.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Series distinguishes this Provisioning from an earlier one that was terminated, so that plan ids never repeat. The
	// workflow derives it from its first run's id, which a reset does not change.
	Series string `json:"series,omitempty"`
	// Round counts the plans made.
	Round int `json:"round"`
	// Pending says that pods have been announced which no plan has looked at yet.
	Pending bool `json:"pending,omitempty"`
	// SeenVersion is the resource version that the next plan must have seen: that of the last NodeClaim a plan created, or a
	// newer one from a PodsPending.
	SeenVersion string `json:"seenVersion,omitempty"`
	// Unavailable are the offerings that were refused lately.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// Grown are pods that still wait though nodes came up for them.
	Grown []Grown `json:"grown,omitempty"`
	// Looked is when the last plan looked at the pods. It has seen everything announced before then.
	Looked time.Time `json:"looked,omitzero"`
	// Last is the note of the last plan, for people. Launched is the note of the last plan that created claims, and
	// LaunchedAt is when that plan was made.
	Last       string    `json:"last,omitempty"`
	Launched   string    `json:"launched,omitempty"`
	LaunchedAt time.Time `json:"launchedAt,omitzero"`
}

// PodsPending is what SignalPodsPending carries. An empty payload is accepted too, and means that pods are pending now.
type PodsPending struct {
	// Seen is when the announced pods were looked at.
	Seen time.Time `json:"seen,omitzero"`
	// SeenVersion is the resource version of the newest NodeClaim seen, if the announcement follows from its deletion. The
	// next plan must have seen that version.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// Unavailable is an offering that is not tried until a given time.
type Unavailable struct {
	cloud.OfferingKey
	Until time.Time `json:"until"`
}

// MostGrown limits the pods whose growth Provisioning remembers, so that its state stays small. It keeps those for which the
// most nodes were created.
const MostGrown = 200

// Grown is a pod that still waits though nodes came up for it (plan.Growth).
type Grown struct {
	// Pod is the pod's UID.
	Pod   string `json:"pod"`
	Nodes int    `json:"nodes"`
	// Until is when the last pause that growing for the pod caused ends, and Seconds is its length. At is how many nodes
	// there were when it began.
	Until   time.Time `json:"until,omitzero"`
	Seconds int       `json:"seconds,omitempty"`
	At      int       `json:"at,omitempty"`
	// Basis identifies the state of the pools.
	Basis string `json:"basis,omitempty"`
}

// CapacityRefused is what SignalCapacityRefused carries.
type CapacityRefused struct {
	Group   string              `json:"group"`
	Refused []cloud.OfferingKey `json:"refused,omitempty"`
	// Quiet says that no pods were released with it: Provisioning remembers the refusal and plans nothing.
	Quiet bool `json:"quiet,omitempty"`
}

// PlanInput asks for one plan.
type PlanInput struct {
	// Plan is the plan's id. A retry has the same id, and finds by it the claims that an earlier try created.
	Plan string `json:"plan"`
	// SeenVersion is a resource version that the plan must have seen, and ClusterUID is the cluster it belongs to.
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
	// ClusterUID is the cluster that was planned for; empty if unknown.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Anew says that the version the plan was to have seen will never appear: it belongs to another cluster of this name, or
	// to this one before it was restored.
	Anew bool `json:"anew,omitempty"`
	// Looked is when the snapshot for the plan was taken; zero if unknown.
	Looked time.Time `json:"looked,omitzero"`
	// Grown are pods that still wait though nodes came up for them.
	Grown []Grown `json:"grown,omitempty"`
	// Again says that this plan stopped early: another one is due at once.
	Again bool `json:"again,omitempty"`
	// Note says in a few lines what was planned, which pods were not placed, and why.
	Note string `json:"note,omitempty"`
}

// LaunchGroup is a group of alike claims that are launched together.
type LaunchGroup struct {
	Group    string     `json:"group"`
	NodePool string     `json:"nodePool,omitempty"`
	Claims   []ClaimRef `json:"claims"`
	// Unavailable are offerings that the claims allow but the launch must avoid, because they were recently refused or taken
	// back. They are listed here because the worker that launches may not know what another worker's provider remembers.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
}

// ClaimRef is a reference to a NodeClaim. The name is for people; the UID distinguishes it from another of the same name.
type ClaimRef struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
