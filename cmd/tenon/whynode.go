package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// nodeFacts are the known facts about a node. Unknown ones are nil or zero.
type nodeFacts struct {
	name  string
	node  *corev1.Node
	claim *karpv1.NodeClaim
	// price is the node's hourly price at its launch, in US dollars.
	price       float64
	answer      *workflows.NodeAnswer
	replacement *replacementState
	drain       *workflows.DrainStatus
	past        *pastNode
}

// replacementState is a Replacement that a node takes part in.
type replacementState struct {
	Workflow string `json:"workflow"`
	// Status is Temporal's: Running, Completed, Canceled and so on.
	Status string `json:"status"`
	// State is what it does or waits for, as the workflow says.
	State string `json:"state,omitempty"`
}

// pastNode is what workflows remember of a node that is gone.
type pastNode struct {
	Workflow  string    `json:"workflow"`
	Node      string    `json:"node,omitempty"`
	NodeClaim string    `json:"nodeClaim,omitempty"`
	NodePool  string    `json:"nodePool,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Drain     string    `json:"drain,omitempty"`
	Ended     time.Time `json:"ended,omitzero"`
}

// nodeStory is what `tenon why node` prints.
type nodeStory struct {
	Name string `json:"name"`
	// State is Stays, Goes, Leaving, Foreign, Gone or Unseen.
	State string `json:"state"`
	// Summary is the story in a sentence or two.
	Summary      string  `json:"summary"`
	Node         string  `json:"node,omitempty"`
	NodeClaim    string  `json:"nodeClaim,omitempty"`
	NodePool     string  `json:"nodePool,omitempty"`
	InstanceType string  `json:"instanceType,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	CapacityType string  `json:"capacityType,omitempty"`
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	// Verdicts say for each reason why the node is kept. Going is the decision to remove it.
	Verdicts    []workflows.NodeVerdict `json:"verdicts,omitempty"`
	Going       *workflows.NodeDecision `json:"going,omitempty"`
	Replacement *replacementState       `json:"replacement,omitempty"`
	Drain       *workflows.DrainStatus  `json:"drain,omitempty"`
	Past        *pastNode               `json:"past,omitempty"`
}

// text returns the story for people.
func (s *nodeStory) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", s.Name, s.Summary)
	if len(s.Verdicts) > 0 {
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "\nREASON\tCAUSE\tIT STAYS BECAUSE")
		for _, v := range s.Verdicts {
			until := ""
			if !v.Until.IsZero() && !strings.Contains(v.Message, v.Until.UTC().Format(time.RFC3339)) {
				until = " (until " + v.Until.UTC().Format(time.RFC3339) + ")"
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s%s\n", v.Reason, v.Cause, v.Message, until)
		}
		_ = table.Flush()
	}
	if r := s.Replacement; r != nil {
		fmt.Fprintf(&b, "\nReplacement %s (%s): %s\n", r.Workflow, r.Status, r.State)
	}
	if d := s.Drain; d != nil {
		fmt.Fprintf(&b, "\nDrain (%s, %s): %d pods evicted, %d left\n", d.Reason, drainPhase(d), d.Evicted, d.Left)
		for _, blocker := range d.Blockers {
			fmt.Fprintf(&b, "  blocked: %s\n", blockerInWords(blocker))
		}
	}
	return b.String()
}

func drainPhase(d *workflows.DrainStatus) string {
	if d.Outcome != "" {
		return string(d.Outcome)
	}
	return d.Phase
}

// story turns the facts into a story.
func (f *nodeFacts) story() *nodeStory {
	s := &nodeStory{Name: f.name, Replacement: f.replacement, Drain: f.drain, Past: f.past}
	if f.node != nil {
		s.Node = f.node.Name
		s.label(f.node.Labels)
	}
	if f.claim != nil {
		s.NodeClaim = f.claim.Name
		s.label(f.claim.Labels)
		s.PricePerHour = f.price
	}
	s.State = f.state()
	switch s.State {
	case "Gone":
		s.Node, s.NodeClaim, s.NodePool = f.past.Node, f.past.NodeClaim, f.past.NodePool
		s.Summary = f.gone()
	case "Foreign":
		s.Summary = "has no NodeClaim of a NodePool, so Tenon did not launch it and does not remove it"
		if f.drain != nil && f.drain.Outcome == "" {
			s.Summary += "; it is being drained by hand"
		}
	case "Unseen":
		s.Summary = f.described(s) + " has not been seen by the worker yet; ask again in a moment"
	case "Leaving":
		s.Summary = f.described(s) + " is being removed"
		switch {
		case f.drain != nil:
			s.Summary += ": " + f.drain.Reason
		case f.replacement != nil:
			s.Summary += ", as soon as its replacement serves"
		case f.node == nil && f.claim != nil && f.claim.DeletionTimestamp != nil:
			s.Summary += ": the instance is being terminated"
		}
	case "Goes":
		s.Going = f.answer.Going
		s.Summary = f.described(s) + " " + goes(s.Going)
	case "Stays":
		s.Verdicts = f.answer.Verdicts
		s.Summary = f.described(s) + " stays"
		if binding := binding(s.Verdicts); binding != nil {
			s.Summary += ": " + plan.Although(karpv1.DisruptionReason(binding.Reason)) + binding.Message
		} else {
			s.Summary += ": there is no reason for it to go"
		}
	}
	return s
}

func (f *nodeFacts) state() string {
	switch {
	case f.past != nil:
		return "Gone"
	case f.answer == nil || f.answer.Known && !f.answer.Managed:
		return "Foreign"
	case f.claim != nil && f.claim.DeletionTimestamp != nil || f.answer.Leaving:
		return "Leaving"
	case !f.answer.Known:
		return "Unseen"
	case f.answer.Going != nil:
		return "Goes"
	}
	return "Stays"
}

// label sets the fields that a machine's labels tell.
func (s *nodeStory) label(labels map[string]string) {
	for _, field := range []struct {
		at  *string
		key string
	}{
		{&s.NodePool, karpv1.NodePoolLabelKey}, {&s.InstanceType, corev1.LabelInstanceTypeStable}, {&s.Zone, corev1.LabelTopologyZone},
		{&s.CapacityType, karpv1.CapacityTypeLabelKey},
	} {
		if value := labels[field.key]; value != "" {
			*field.at = value
		}
	}
}

// described returns a description of the machine in parentheses.
func (f *nodeFacts) described(s *nodeStory) string {
	parts := []string{}
	if s.Node != "" && s.Node != s.Name {
		parts = append(parts, "node "+s.Node)
	}
	if s.NodeClaim != "" && s.NodeClaim != s.Name {
		parts = append(parts, "NodeClaim "+s.NodeClaim)
	}
	if s.NodePool != "" {
		parts = append(parts, "NodePool "+s.NodePool)
	}
	if s.InstanceType != "" {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s in %s", s.CapacityType, s.InstanceType, s.Zone)))
	}
	if s.PricePerHour > 0 {
		parts = append(parts, cloud.Money(s.Zone, s.PricePerHour)+" per hour")
	}
	if len(parts) == 0 {
		return ""
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// goes returns a sentence about the decision to remove a node.
func goes(decided *workflows.NodeDecision) string {
	text := fmt.Sprintf("goes for being %s", strings.ToLower(decided.Reason))
	if decided.Why != "" {
		text += ": " + decided.Why
	}
	if len(decided.Others) > 0 {
		text += "; together with " + strings.Join(decided.Others, ", ")
	}
	if len(decided.Replacements) > 0 {
		text += "; launched first: " + strings.Join(decided.Replacements, ", ")
	}
	return text
}

// gone returns a sentence about how a node ended.
func (f *nodeFacts) gone() string {
	text := "is gone"
	if !f.past.Ended.IsZero() {
		text = "has been gone since " + f.past.Ended.UTC().Format(time.RFC3339)
	}
	if f.past.NodeClaim != "" && f.past.NodeClaim != f.name {
		text += fmt.Sprintf(" (NodeClaim %s of NodePool %s)", f.past.NodeClaim, f.past.NodePool)
	}
	if f.past.Reason == "" {
		return text + "; why is not known"
	}
	text += ": " + f.past.Reason
	if f.past.Drain != "" {
		text += ", its drain ended as " + f.past.Drain
	}
	return text
}

// binding returns the verdict to put into the summary: the first that applies to the node, preferably not one of
// policy.
func binding(verdicts []workflows.NodeVerdict) *workflows.NodeVerdict {
	for i := range verdicts {
		if cause := plan.Cause(verdicts[i].Cause); cause != plan.CauseNone && cause != plan.CausePolicy {
			return &verdicts[i]
		}
	}
	for i := range verdicts {
		if plan.Cause(verdicts[i].Cause) != plan.CauseNone {
			return &verdicts[i]
		}
	}
	return nil
}
