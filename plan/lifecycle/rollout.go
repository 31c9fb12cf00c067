package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Drifting counts the nodes of a pool during a rollout.
type Drifting struct {
	// Nodes are those that are not leaving, whether they serve yet or not. Shares in percent are of them.
	Nodes int
	// New are the nodes made since the target was first seen that match it. They count whoever had them launched. Serving
	// are those of them that are initialized.
	New, Serving int
	// Moving are the drifted nodes that a Replacement removes and whose new nodes do not exist yet.
	Moving int
	// Left are the drifted nodes that stay so far, and Leaving those that go.
	Left, Leaving int
}

// IsNew says that a node was made since a rollout began and matches its target.
func IsNew(n *model.Node, began time.Time) bool {
	return n.Managed() && !n.Drifted && !n.Created.Before(began)
}

// CountDrifting counts the nodes of a pool. nodes may include others.
func CountDrifting(nodes []*model.Node, pool string, began time.Time) Drifting {
	var d Drifting
	// By replacement: nodes that go less nodes that come.
	missing := map[string]int{}
	for _, n := range nodes {
		if n.Pool != pool || !n.Managed() {
			continue
		}
		switch leaving := n.Leaving(); {
		case leaving && n.Drifted:
			d.Leaving++
			if n.Replacement != "" {
				missing[n.Replacement]++
			}
		case leaving:
		case n.Drifted:
			d.Nodes++
			d.Left++
		default:
			d.Nodes++
			if !IsNew(n, began) {
				break
			}
			d.New++
			if n.Initialized {
				d.Serving++
			}
			if n.Replacement != "" {
				missing[n.Replacement]--
			}
		}
	}
	for _, count := range missing {
		d.Moving += max(0, count)
	}
	return d
}

// RolloutNode is a node of a pool, with what only its objects in the API server tell.
type RolloutNode struct {
	*model.Node
	// LaunchedAt is when its machine was launched; zero before that.
	LaunchedAt time.Time
	// Ill is what its conditions say is wrong with it, and IllSince since when; empty for a healthy node.
	Ill      string
	IllSince time.Time
}

// RolloutAnswer is what Prometheus said to a rollout's query.
type RolloutAnswer struct {
	// At is when it was asked; zero if it was not.
	At time.Time
	// Failed says what is wrong with the answer, Unknown why there is none; both are empty if all is well.
	Failed, Unknown string
}

// RolloutFacts is everything that JudgeRollout knows.
type RolloutFacts struct {
	Pool *karpv1.NodePool
	// Target is what nodes are made from now; empty if that is not known. Previous is the target before.
	Target, Previous string
	// Nodes are the nodes of the pool, and Others all other nodes.
	Nodes  []RolloutNode
	Others []*model.Node
	// Unready is since when pods have not been Ready for good, as far as that was seen.
	Unready map[types.UID]time.Time
	Answer  RolloutAnswer
	Now     time.Time
}

// RolloutJudgement is how far a rollout is, and what people are told about it.
type RolloutJudgement struct {
	State karpv1.RolloutState
	// Reason and Message are those of the condition Rollout.
	Reason, Message string
	// Asks says that the query has to be asked now.
	Asks bool
	// NextLook is when time alone may change the answer; zero for never.
	NextLook time.Time
}

const (
	// illFor is how long a condition has to show that a node is ill before the rollout stops. Until then it waits.
	illFor = time.Minute
	// answerLasts is how long an answer of Prometheus counts.
	answerLasts = time.Minute
	// shownFailures is how many nodes or pods one message names.
	shownFailures = 3
)

// JudgeRollout decides how far the rollout of a pool is, which has the annotation for one. A new target begins a new
// rollout at its first step. A step is filled when as many nodes of the target serve as it wants, or none is left to
// replace. Its nodes then bake: the step is over when the time has passed, nothing on it is ill or unready, and the query
// is answered well. Whatever is ill for too long stops the rollout until a person has it go on; what existed at that moment
// is not judged again. The last step leads to all nodes, after a stop if it is below 100 %.
func JudgeRollout(f RolloutFacts) RolloutJudgement {
	j := judgement{f: f}
	rollout, err := f.Pool.Rollout()
	state, stateErr := f.Pool.RolloutState()
	order, orderErr := f.Pool.RolloutOrder()
	j.State = state
	for _, err := range []error{err, stateErr, orderErr} {
		if err != nil {
			return j.say(karpv1.RolloutInvalid, "no node goes for having drifted, because of what cannot be read: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	if f.Target == "" {
		return j.say(karpv1.RolloutUnknown, "no node goes for having drifted, because what new nodes are made from is not known: the node class is not ready, or has just changed")
	}
	j.rollout = rollout
	if state.Target != f.Target {
		j.begin()
	}
	j.counted = CountDrifting(f.nodes(), f.Pool.Name, j.State.Began)
	j.see()
	j.resume(order)
	switch {
	case order.What == karpv1.RolloutStop:
		return j.say(karpv1.RolloutStopped, "stopped at %s by %s: %s", rollout.Describe(j.State.Step), order.By, order.Reason)
	case j.State.Seen.IsZero():
		return j.say(karpv1.RolloutComplete, "no node has drifted")
	case !j.State.Done.IsZero():
		return j.complete()
	}
	if j.State.Stopped == "" {
		j.stop(j.failures())
	}
	if j.State.Stopped == "" {
		j.fill()
		return j.bake()
	}
	return j.say(karpv1.RolloutStopped, "stopped at %s: %s", rollout.Describe(j.State.Step), j.State.Stopped)
}

// judgement is one judgement under way.
type judgement struct {
	RolloutJudgement
	f       RolloutFacts
	rollout *karpv1.Rollout
	counted Drifting
}

func (f *RolloutFacts) nodes() []*model.Node {
	nodes := make([]*model.Node, len(f.Nodes))
	for i := range f.Nodes {
		nodes[i] = f.Nodes[i].Node
	}
	return nodes
}

func (j *judgement) say(reason, format string, values ...any) RolloutJudgement {
	j.Reason, j.Message = reason, fmt.Sprintf(format, values...)
	return j.RolloutJudgement
}

// lookAt brings the next look forward.
func (j *judgement) lookAt(at time.Time) {
	if at.After(j.f.Now) && (j.NextLook.IsZero() || at.Before(j.NextLook)) {
		j.NextLook = at
	}
}

// begin begins a new rollout. Going back to what was there before needs no steps: it has proved itself.
func (j *judgement) begin() {
	j.State = karpv1.RolloutState{Target: j.f.Target, Began: j.f.Now.UTC().Truncate(time.Second)}
	if j.f.Previous == j.f.Target {
		j.State.Back, j.State.Step = true, len(j.rollout.Steps)
	}
}

// see notes which nodes have drifted.
func (j *judgement) see() {
	j.State.Step = min(j.State.Step, len(j.rollout.Steps))
	for i := range j.f.Nodes {
		if n := &j.f.Nodes[i]; n.Drifted {
			j.State.Seen = model.Later(j.State.Seen, n.DriftedAt.UTC())
		}
	}
}

// resume goes on where a person has said so since the rollout began and stopped.
func (j *judgement) resume(order karpv1.RolloutOrder) {
	s := &j.State
	if order.What != karpv1.RolloutResume && order.What != karpv1.RolloutBack || order.At.Before(s.Began) || order.At.Before(s.StoppedAt) || !order.At.After(s.Resumed) {
		return
	}
	s.Resumed, s.Stopped, s.StoppedAt = order.At.UTC(), "", time.Time{}
	if !s.Filled.IsZero() {
		s.Filled = s.Resumed
	}
}

// stop stops the rollout if anything failed.
func (j *judgement) stop(failed []string) {
	if len(failed) == 0 {
		return
	}
	text := strings.Join(failed[:min(len(failed), shownFailures)], "; ")
	if more := len(failed) - shownFailures; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	j.State.Stopped, j.State.StoppedAt = text, j.f.Now.UTC().Truncate(time.Second)
}

// failures says what has gone wrong with the nodes of the target and their pods.
func (j *judgement) failures() []string {
	var failed []string
	for i := range j.f.Nodes {
		n := &j.f.Nodes[i]
		if !IsNew(n.Node, j.State.Began) || n.Created.Before(j.State.Resumed) {
			continue
		}
		late := n.LaunchedAt.Add(j.rollout.ReadyWithin)
		switch {
		case !j.rollout.Nodes || n.LaunchedAt.IsZero():
		case !n.Initialized && !n.Leaving():
			if !j.f.Now.Before(late) {
				failed = append(failed, fmt.Sprintf("node %s is not Ready %s after its launch", name(n.Node), j.rollout.ReadyWithin))
			}
			j.lookAt(late)
		case n.Initialized && n.Ill != "":
			if until := n.IllSince.Add(illFor); !j.f.Now.Before(until) {
				failed = append(failed, fmt.Sprintf("node %s is ill: %s", name(n.Node), n.Ill))
			} else {
				j.lookAt(until)
			}
		}
		if j.rollout.Pods && n.Initialized && !n.Leaving() {
			failed = append(failed, j.podFailures(n)...)
		}
	}
	if at := j.f.Answer; at.Failed != "" && j.rollout.Query != "" && j.fresh() {
		failed = append(failed, "the query ("+karpv1.RolloutQueryAnnotationKey+") "+at.Failed)
	}
	return failed
}

// name names a node for people, by its claim before it has joined.
func name(n *model.Node) string { return cmp.Or(n.Name, n.Claim) }

// podFailures says which pods on a node of the target are not Ready although they have had their time. A pod whose like is
// not Ready on a node that is not of the target has a problem of its own.
func (j *judgement) podFailures(n *RolloutNode) []string {
	var failed []string
	for _, pod := range n.Pods {
		since := j.unready(pod)
		if since.IsZero() || since.Before(j.State.Resumed) || j.unreadyElsewhere(pod) {
			continue
		}
		if late := since.Add(j.rollout.ReadyWithin); j.f.Now.Before(late) {
			j.lookAt(late)
			continue
		}
		failed = append(failed, fmt.Sprintf("pod %s on new node %s has not been Ready for %s", pod.Key(), name(n.Node), j.rollout.ReadyWithin))
	}
	return failed
}

// unready returns since when a pod should be Ready and is not; zero if it is, or need not be.
func (j *judgement) unready(pod *model.Pod) time.Time {
	since, seen := j.f.Unready[pod.UID]
	if !seen || pod.Terminal || pod.Terminating() || pod.Virtual {
		return time.Time{}
	}
	return since
}

// unreadyElsewhere says that a pod of the same controller is not Ready either on a node that is not of the target.
func (j *judgement) unreadyElsewhere(pod *model.Pod) bool {
	if pod.OwnerName == "" {
		return false
	}
	alike := func(n *model.Node) bool {
		return slices.ContainsFunc(n.Pods, func(other *model.Pod) bool {
			return other.Workload() == pod.Workload() && !j.unready(other).IsZero()
		})
	}
	return slices.ContainsFunc(j.f.Others, alike) || slices.ContainsFunc(j.f.Nodes, func(n RolloutNode) bool { return !IsNew(n.Node, j.State.Began) && alike(n.Node) })
}

// fill notes since when the step has its nodes, and the pods of those before have moved.
func (j *judgement) fill() {
	want := j.rollout.Want(j.State.Step, j.counted.Nodes)
	if j.State.Filled.IsZero() && j.counted.Leaving == 0 && (j.counted.Serving >= want || j.counted.Left == 0) {
		j.State.Filled = j.f.Now.UTC().Truncate(time.Second)
	}
}

// bake ends the step when its nodes have proved themselves.
func (j *judgement) bake() RolloutJudgement {
	at, of := j.rollout.Describe(j.State.Step), j.progress()
	if j.State.Back {
		at = "going back to what nodes were made from before"
	}
	if j.State.Filled.IsZero() {
		return j.say(karpv1.RolloutProgressing, "%s: %s", at, of)
	}
	baked := j.State.Filled.Add(j.rollout.Bake)
	j.Asks = j.rollout.Query != ""
	switch waits := j.waits(); {
	case j.f.Now.Before(baked):
		j.lookAt(baked)
		return j.say(karpv1.RolloutBaking, "%s is watched until %s: %s%s", at, Clock(baked), of, waits)
	case waits != "":
		return j.say(karpv1.RolloutBaking, "%s has been watched since %s: %s%s", at, Clock(j.State.Filled), of, waits)
	}
	return j.advance()
}

func (j *judgement) progress() string {
	text := fmt.Sprintf("%d of %d nodes are new, %d have drifted", j.counted.New, j.counted.Nodes, j.counted.Left)
	if j.counted.Leaving > 0 {
		text += fmt.Sprintf(", and %d leave", j.counted.Leaving)
	}
	return text
}

// waits says what the end of a step still waits for; empty if for nothing. Nodes that came after the step was filled are
// the next step's or somebody else's, and so are pods that came after it has baked.
func (j *judgement) waits() string {
	baked := j.State.Filled.Add(j.rollout.Bake)
	for i := range j.f.Nodes {
		n := &j.f.Nodes[i]
		if !IsNew(n.Node, j.State.Began) || n.Created.Before(j.State.Resumed) || n.Leaving() {
			continue
		}
		switch {
		case !j.rollout.Nodes:
		case n.Ill != "" && n.Initialized:
			return fmt.Sprintf("; it waits for node %s: %s", name(n.Node), n.Ill)
		case !n.Initialized && n.Created.Before(j.State.Filled):
			return fmt.Sprintf("; it waits for node %s to be Ready", name(n.Node))
		}
		for _, pod := range n.Pods {
			since := j.unready(pod)
			if j.rollout.Pods && !since.IsZero() && !since.Before(j.State.Resumed) && since.Before(baked) && !j.unreadyElsewhere(pod) {
				return fmt.Sprintf("; it waits for pod %s on new node %s to be Ready", pod.Key(), name(n.Node))
			}
		}
	}
	switch {
	case j.rollout.Query == "":
	case !j.fresh():
		return "; the query (" + karpv1.RolloutQueryAnnotationKey + ") has not been answered yet"
	case j.f.Answer.Unknown != "":
		return "; the query (" + karpv1.RolloutQueryAnnotationKey + ") cannot be asked: " + j.f.Answer.Unknown
	}
	return ""
}

// fresh says that the query was answered lately, and since the step was filled.
func (j *judgement) fresh() bool {
	at := j.f.Answer.At
	return !j.State.Filled.IsZero() && !at.Before(j.State.Filled) && j.f.Now.Sub(at) < answerLasts
}

// advance goes on to the next step that adds nodes, or to the end.
func (j *judgement) advance() RolloutJudgement {
	s, steps, now := &j.State, len(j.rollout.Steps), j.f.Now.UTC().Truncate(time.Second)
	if j.counted.Left+j.counted.Leaving == 0 {
		s.Done, s.Step, s.Filled = now, steps, time.Time{}
		return j.complete()
	}
	had, last := j.rollout.Want(s.Step, j.counted.Nodes), s.Step == steps-1
	for s.Step++; s.Step < steps-1 && j.rollout.Want(s.Step, j.counted.Nodes) <= had; s.Step++ {
	}
	s.Step, s.Filled = min(s.Step, steps), time.Time{}
	if last && had != karpv1.Unbounded {
		j.stop([]string{fmt.Sprintf("the last step is done, and %d nodes have drifted; tenon rollout resume goes on with them", j.counted.Left+j.counted.Leaving)})
		return j.say(karpv1.RolloutStopped, "stopped at %s: %s", j.rollout.Describe(s.Step), s.Stopped)
	}
	return j.say(karpv1.RolloutProgressing, "%s: %s", j.rollout.Describe(s.Step), j.progress())
}

// complete says that the rollout is over.
func (j *judgement) complete() RolloutJudgement {
	if left := j.counted.Left; left > 0 {
		return j.say(karpv1.RolloutComplete, "since %s; %d nodes have drifted since, and go within the budgets", Clock(j.State.Done), left)
	}
	return j.say(karpv1.RolloutComplete, "since %s: no node has drifted any more", Clock(j.State.Done))
}
