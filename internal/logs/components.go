package logs

import "strings"

// The components, whose names are those of their loggers.
const (
	Planner    = "planner"
	Launch     = "launch"
	NodeClaim  = "nodeclaim"
	Drain      = "drain"
	Disruption = "disruption"
	Sweep      = "sweep"
	Starter    = "starter"
	Status     = "status"
	Mirror     = "mirror"
	AWS        = "aws"
	Temporal   = "temporal"
	Kubernetes = "kubernetes"
	Page       = "page"
	Tracing    = "tracing"
	Worker     = "worker"
)

// Component is a part of the worker that can have a log level of its own.
type Component struct {
	Name string
	// About says what its lines are about.
	About string
}

// Components returns all components.
func Components() []Component {
	return []Component{
		{Planner, "plans for pending pods, claims that are created for them, and nominations of pods"},
		{Launch, "launch groups and what CreateFleet answered"},
		{NodeClaim, "the lives of nodes: launched, registered, initialized, deleted, terminated"},
		{Drain, "drains, evictions and what blocks them"},
		{Disruption, "evaluations, removals and replacements"},
		{Sweep, "what sweeps found and put right"},
		{Starter, "what the cluster announces to workflows, interruptions, and the Lease"},
		{Status, "the status of NodePools, node classes, NodeClaims, overlays and buffers"},
		{Mirror, "the worker's copy of the cluster"},
		{AWS, "calls of AWS, and what is refreshed from it"},
		{Temporal, "Temporal's SDK, and whether the server answers"},
		{Kubernetes, "the Kubernetes client libraries"},
		{Page, "the page on which people watch the cluster"},
		{Tracing, "traces of nodes and their export"},
		{Worker, "the process: configuration, memory, fence, versions"},
	}
}

// ComponentNames returns the names of all components as a list for people.
func ComponentNames() string {
	var names []string
	for _, c := range Components() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}
