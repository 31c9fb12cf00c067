package workflows

import (
	"time"

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

// maxUnavailable bounds the refused offerings Provisioning remembers, so that its state stays well below the payload
// limits. Beyond it the oldest are forgotten: the worst that follows is one more refusal.
const maxUnavailable = 400

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
