package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations on NodePools about rollouts.
const (
	// RolloutAnnotationKey has the drifted nodes of a NodePool replaced in steps, such as 1,10%,100%: how many of its nodes, or
	// what share of them, may be of the new target before the step has proved itself. While it cannot be read, no node goes
	// for having drifted.
	RolloutAnnotationKey = "tenon.sh/rollout"
	// RolloutBakeAnnotationKey is how long (a Go duration such as 30m) the nodes of a step have to serve before the next step.
	RolloutBakeAnnotationKey = "tenon.sh/rollout-bake"
	// RolloutReadyWithinAnnotationKey is how long (a Go duration of at most RolloutReadyWithinMost) a node has from its launch,
	// and a pod on it from its start, to be Ready.
	RolloutReadyWithinAnnotationKey = "tenon.sh/rollout-ready-within"
	// RolloutGateAnnotationKey says what has to be well for the next step: nodes, pods, both separated by a comma, or none.
	RolloutGateAnnotationKey = "tenon.sh/rollout-gate"
	// RolloutQueryAnnotationKey is a Prometheus query that has to return samples, none of them zero, for the next step.
	RolloutQueryAnnotationKey = "tenon.sh/rollout-query"
	// RolloutStateAnnotationKey holds how far the rollout is. Tenon writes it.
	RolloutStateAnnotationKey = "tenon.sh/rollout-state"
	// RolloutOrderAnnotationKey holds what a person has ordered with tenon rollout.
	RolloutOrderAnnotationKey = "tenon.sh/rollout-order"
	// RolloutTargetsAnnotationKey holds what the nodes are made from now, and were before, for tenon rollout back. Tenon writes
	// it.
	RolloutTargetsAnnotationKey = "tenon.sh/rollout-targets"
)

// What holds where a NodePool with a rollout does not say otherwise.
const (
	RolloutBakeDefault        = 10 * time.Minute
	RolloutReadyWithinDefault = 5 * time.Minute
	// RolloutReadyWithinMost is well below the 15 minutes after which a machine that has not joined is cleared away.
	RolloutReadyWithinMost = 10 * time.Minute
)

// ConditionTypeRollout is the condition of a NodePool that says how far the rollout of its nodes is. It is absent where the
// pool has none, and does not affect Ready.
const ConditionTypeRollout = "Rollout"

// The reasons of the condition Rollout.
const (
	// RolloutInvalid says that an annotation cannot be read; nothing is rolled out. RolloutUnknown says the same of what the
	// nodes would be made from.
	RolloutInvalid, RolloutUnknown = "Invalid", "Unknown"
	// RolloutProgressing says that the nodes of a step are being replaced, RolloutBaking that they are watched.
	RolloutProgressing, RolloutBaking = "Progressing", "Baking"
	// RolloutStopped says that nothing is replaced until somebody says so.
	RolloutStopped = "Stopped"
	// RolloutComplete says that no node has drifted, or that all that do may be replaced.
	RolloutComplete = "Complete"
)

// Rollout is how the drifted nodes of a NodePool are replaced.
//
// +kubebuilder:object:generate=false
type Rollout struct {
	// Steps are numbers of nodes, or shares of the pool's nodes in percent, rounded up as in budgets.
	Steps []intstr.IntOrString
	// Bake and ReadyWithin are the times of RolloutBakeAnnotationKey and RolloutReadyWithinAnnotationKey.
	Bake, ReadyWithin time.Duration
	// Nodes and Pods say whether they have to be well.
	Nodes, Pods bool
	// Query is a Prometheus query; empty where none has to be asked.
	Query string
}

// Rollout returns how the pool's drifted nodes are replaced, by its annotations; nil if they are not replaced in steps. An
// error names the annotation.
func (in *NodePool) Rollout() (*Rollout, error) {
	text, some := in.Annotations[RolloutAnnotationKey]
	if !some {
		return nil, nil
	}
	rollout := &Rollout{Nodes: true, Pods: true, Query: strings.TrimSpace(in.Annotations[RolloutQueryAnnotationKey])}
	var stepsErr, bakeErr, withinErr, gateErr error
	rollout.Steps, stepsErr = parseSteps(text)
	rollout.Bake, bakeErr = in.rolloutTime(RolloutBakeAnnotationKey, RolloutBakeDefault)
	rollout.ReadyWithin, withinErr = in.rolloutTime(RolloutReadyWithinAnnotationKey, RolloutReadyWithinDefault)
	if withinErr == nil && (rollout.ReadyWithin == 0 || rollout.ReadyWithin > RolloutReadyWithinMost) {
		withinErr = fmt.Errorf("annotation %s: must be more than zero and at most %s", RolloutReadyWithinAnnotationKey, RolloutReadyWithinMost)
	}
	if gate, some := in.Annotations[RolloutGateAnnotationKey]; some {
		rollout.Nodes, rollout.Pods, gateErr = parseGate(gate)
	}
	if err := errors.Join(stepsErr, bakeErr, withinErr, gateErr); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return rollout, nil
}

// rolloutTime reads an annotation that holds a time.
func (in *NodePool) rolloutTime(key string, otherwise time.Duration) (time.Duration, error) {
	text, some := in.Annotations[key]
	if !some {
		return otherwise, nil
	}
	found, err := time.ParseDuration(text)
	if err != nil || found < 0 {
		return 0, fmt.Errorf("annotation %s: %q must be a time such as 30m", key, text)
	}
	return found, nil
}

// parseSteps reads the steps of a rollout: each number is larger than the one before, and so is each share. A number and a
// share cannot be compared here; a step that adds nothing is passed over.
func parseSteps(text string) ([]intstr.IntOrString, error) {
	var steps []intstr.IntOrString
	var number, share int
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		step := intstr.Parse(word)
		value, err := intstr.GetScaledValueFromIntOrPercent(&step, 100, true)
		last := &number
		if step.Type == intstr.String {
			last = &share
		}
		if !rateNodes.MatchString(word) || err != nil || value <= *last || share == 100 && last == &number {
			return nil, fmt.Errorf("annotation %s: %q must be numbers of nodes or percentages of them, each larger than the one before, such as 1,10%%,100%%", RolloutAnnotationKey, text)
		}
		*last = value
		steps = append(steps, step)
	}
	return steps, nil
}

// The words of RolloutGateAnnotationKey.
const gateNodes, gatePods, gateNone = "nodes", "pods", "none"

func parseGate(text string) (nodes, pods bool, err error) {
	if strings.TrimSpace(text) == gateNone {
		return false, false, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		switch strings.TrimSpace(word) {
		case gateNodes:
			nodes = true
		case gatePods:
			pods = true
		default:
			return false, false, fmt.Errorf("annotation %s: %q must be nodes, pods, both separated by a comma, or none", RolloutGateAnnotationKey, text)
		}
	}
	return nodes, pods, nil
}

// Want returns how many nodes of the new target a step allows, of the number of nodes that the pool has; Unbounded for a
// share of 100 % and after the last step.
func (r *Rollout) Want(step, nodes int) int {
	if step >= len(r.Steps) {
		return Unbounded
	}
	want := r.Steps[step]
	if want.Type == intstr.String && want.StrVal == "100%" {
		return Unbounded
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(&want, nodes, true)
	if err != nil {
		return 0 // only what parseSteps has not seen
	}
	return most
}

// Describe names a step for people, such as "step 2 of 3 (10%)".
func (r *Rollout) Describe(step int) string {
	if step >= len(r.Steps) {
		return "the end of its steps"
	}
	return fmt.Sprintf("step %d of %d (%s)", step+1, len(r.Steps), r.Steps[step].String())
}

// RolloutState is how far a rollout is. What can be seen in the cluster is not in it.
//
// +kubebuilder:object:generate=false
type RolloutState struct {
	// Target identifies what nodes are made from, and Began is when it was first seen: nodes made since are of it.
	Target string    `json:"target"`
	Began  time.Time `json:"began"`
	// Step is the number of the step, from 0; the number of steps says that all nodes may be replaced.
	Step int `json:"step"`
	// Filled is since when the step has its nodes; zero if it lacks some.
	Filled time.Time `json:"filled,omitzero"`
	// Seen is when the last node that counts drifted. Nodes that drifted later wait: what they drift to may not be known yet.
	Seen time.Time `json:"seen,omitzero"`
	// StoppedAt and Stopped are when and why the rollout stopped by itself; empty while it goes on.
	StoppedAt time.Time `json:"stoppedAt,omitzero"`
	Stopped   string    `json:"stopped,omitempty"`
	// Resumed is when a person last had it go on. Nodes made before are not judged any more.
	Resumed time.Time `json:"resumed,omitzero"`
	// Back says that the target is the one before the last, to which a person went back.
	Back bool `json:"back,omitempty"`
	// Done is when the last node was replaced.
	Done time.Time `json:"done,omitzero"`
}

// RolloutState returns how far the pool's rollout is; the zero state where none has begun.
func (in *NodePool) RolloutState() (RolloutState, error) {
	var state RolloutState
	err := in.rolloutJSON(RolloutStateAnnotationKey, &state)
	return state, err
}

// The orders of a person to a rollout.
const RolloutStop, RolloutResume, RolloutBack = "stop", "resume", "back"

// RolloutOrder is what a person has ordered.
//
// +kubebuilder:object:generate=false
type RolloutOrder struct {
	// What is RolloutStop, which holds until another order, RolloutResume or RolloutBack.
	What string `json:"what"`
	// Reason is why, By the user name by which the API server knows the person, and At when.
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
}

// RolloutOrder returns the last order of a person to the pool's rollout; the zero order if there is none.
func (in *NodePool) RolloutOrder() (RolloutOrder, error) {
	var order RolloutOrder
	err := in.rolloutJSON(RolloutOrderAnnotationKey, &order)
	if err == nil && !slices.Contains([]string{"", RolloutStop, RolloutResume, RolloutBack}, order.What) {
		err = fmt.Errorf("annotation %s: what: %q must be stop, resume or back", RolloutOrderAnnotationKey, order.What)
	}
	return order, err
}

// rolloutJSON reads an annotation that holds JSON. An absent one leaves into as it is.
func (in *NodePool) rolloutJSON(key string, into any) error {
	text := in.Annotations[key]
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("annotation %s: %w; remove it to begin anew", key, err)
	}
	return nil
}

// RolloutStop says why no node of the pool may go for having drifted, as far as its annotations say; empty if they do not.
// Every worker asks this just before it acts.
func (in *NodePool) RolloutStop() string {
	rollout, err := in.Rollout()
	if err == nil && rollout == nil {
		return ""
	}
	state, stateErr := in.RolloutState()
	order, orderErr := in.RolloutOrder()
	if err := errors.Join(err, stateErr, orderErr); err != nil {
		return fmt.Sprintf("the rollout of NodePool %s is held: %s", in.Name, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	at := fmt.Sprintf("the rollout of NodePool %s is stopped at %s", in.Name, rollout.Describe(state.Step))
	switch {
	case order.What == RolloutStop:
		return fmt.Sprintf("%s by %s: %s", at, order.By, order.Reason)
	case state.Stopped != "":
		return at + ": " + state.Stopped
	}
	return ""
}
