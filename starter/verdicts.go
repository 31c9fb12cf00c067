package starter

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// The reasons of the Events by which people with kubectl learn why a node stays. They are Karpenter's.
const (
	eventBlocked         = "DisruptionBlocked"
	eventUnconsolidable  = "Unconsolidatable"
	eventInvalidSchedule = "InvalidDisruptionSettings"
)

const (
	// verdictsMost bounds the nodes that Events are recorded for after one look. The rest follows with later looks.
	verdictsMost = 50
	// verdictLength is how long the message of an Event may be, in bytes.
	verdictLength = 1000
	// lasting is how long the same kind of thing must have kept a node before it is worth an Event, and how long the node
	// must have served: what a node's first moments and its last ones look like is no news, and every Event is a write.
	lasting = time.Minute
	// unending is the same for what should pass by itself: only where it does not is it worth an Event.
	unending = 5 * time.Minute
	// kindsEvery is how often at most Disruption is woken only so that its details tell what keeps nodes.
	kindsEvery = 10 * time.Minute
)

// verdicts remembers what was said of which node. It is this process's memory: after a restart all is said again.
type verdicts struct {
	nodes map[string]saidOf
	pools map[string]uint64
	// misprotected are the values that were complained about.
	misprotected map[types.UID]uint64
	// kinds are the reasons and causes that Disruption was last woken to write down, and when that was.
	kinds   uint64
	kindsAt time.Time
}

// saidOf is what was said of a node: every kind of sentence once in its life.
type saidOf struct {
	// told has a bit for every kind.
	told uint64
	// kind is the one that holds now, and since when.
	kind  int
	since time.Time
}

// telling is one Event to be recorded.
type telling struct {
	node, reason, message string
}

// choose returns what is to be said of nodes, in the order of their names, and when there may be more to say if nothing
// changes; zero if then there is not. Young are nodes of which nothing is said yet.
func (v *verdicts) choose(found plan.Disruption, young map[string]bool, now time.Time) (tellings []telling, next time.Time) {
	said := make(map[string]saidOf, len(v.nodes))
	again := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for start := 0; start < len(found.Verdicts); {
		node, end := found.Verdicts[start].Node, start
		for end < len(found.Verdicts) && found.Verdicts[end].Node == node {
			end++
		}
		binding, speaks := binding(found.Verdicts[start:end])
		start = end
		of := v.nodes[node]
		if speaks && !young[node] {
			kind := kindOf(binding)
			if of.since.IsZero() || of.kind != kind {
				of.kind, of.since = kind, now
			}
			switch due := of.since.Add(toLast(binding)); {
			case of.told&(1<<kind) != 0:
			case now.Before(due):
				again(due)
			case len(tellings) == verdictsMost:
				again(now)
			default:
				of.told |= 1 << kind
				tellings = append(tellings, telling{node, eventOf(binding), shortened(before(binding.Reason) + binding.Message)})
			}
		} else {
			of.since = time.Time{}
		}
		if of != (saidOf{}) {
			said[node] = of
		}
	}
	v.nodes = said
	return tellings, next
}

// binding is the verdict of a node that is worth telling people of: what blocks it for the first reason that applies, or
// else what speaks against consolidation, or else what time will tell.
func binding(of []plan.Verdict) (found plan.Verdict, speaks bool) {
	most := 0
	for _, v := range of {
		weight := 0
		switch v.Cause {
		case plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget:
			weight = 3
		case plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer:
			switch {
			case v.Reason != karpv1.DisruptionReasonUnderutilized && v.Reason != karpv1.DisruptionReasonEmpty:
				weight = 3
			case v.Reason == karpv1.DisruptionReasonUnderutilized || v.Cause == plan.CauseBuffer:
				weight = 2
			}
		case plan.CauseQuiet:
			weight = 1
		}
		if weight > most {
			found, most = v, weight
		}
	}
	return found, most > 0
}

// toLast is how long a verdict must have held before it is worth an Event.
func toLast(v plan.Verdict) time.Duration {
	if v.Cause == plan.CauseQuiet {
		return unending
	}
	return lasting
}

// eventOf is the reason of the Event that tells of a verdict.
func eventOf(v plan.Verdict) string {
	switch v.Cause {
	case plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer:
		if v.Reason == karpv1.DisruptionReasonUnderutilized || v.Reason == karpv1.DisruptionReasonEmpty {
			return eventUnconsolidable
		}
	}
	return eventBlocked
}

// kindOf numbers reason and cause of a verdict, below 64.
func kindOf(v plan.Verdict) int {
	causes := [...]plan.Cause{plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget, plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer, plan.CauseQuiet}
	return slices.Index(plan.DisruptionReasons(), v.Reason)*len(causes) + slices.Index(causes[:], v.Cause)
}

// before says which reason there would be, where that is a fact about the node.
func before(reason karpv1.DisruptionReason) string {
	switch reason {
	case karpv1.DisruptionReasonDrifted:
		return "it has drifted, but "
	case plan.DisruptionReasonExpired:
		return "it has expired, but "
	case karpv1.DisruptionReasonEmpty:
		return "it is empty, but "
	}
	return ""
}

// markOf tells sentences apart, whatever numbers are in them: counts and prices that change make no news.
func markOf(message string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, message)))
	return hash.Sum64()
}

// shortened cuts a sentence that an Event would not hold, not in the middle of a character.
func shortened(message string) string {
	if len(message) <= verdictLength {
		return message
	}
	cut := verdictLength - 3
	for cut > 0 && message[cut]&0xC0 == 0x80 {
		cut--
	}
	return message[:cut] + "..."
}

// tell records Events about the nodes that stay and the NodePools whose settings cannot be read. It says when there may
// be more to tell if nothing changes; zero if then there is not.
func (s *Starter) tell(snapshot *plan.Snapshot, found plan.Disruption) (next time.Time) {
	if s.Events == nil {
		return time.Time{}
	}
	names, young := make(map[string]string, len(snapshot.Nodes)), map[string]bool{}
	for _, n := range snapshot.Nodes {
		names[n.Key()] = n.Name
		if !n.Initialized {
			young[n.Key()] = true
		} else if served := n.InitializedAt.Add(lasting); snapshot.Time.Before(served) {
			young[n.Key()] = true
			if next.IsZero() || served.Before(next) {
				next = served
			}
		}
	}
	tellings, more := s.verdicts.choose(found, young, snapshot.Time)
	if !more.IsZero() && (next.IsZero() || more.Before(next)) {
		next = more
	}
	for _, t := range tellings {
		if claim := s.Mirror.Claim(t.node); claim != nil {
			s.record(claim, &corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim", Name: claim.Name, UID: claim.UID}, t)
		}
		if node := s.Mirror.Node(names[t.node]); node != nil {
			s.record(node, node, t)
		}
	}
	s.tellPools(snapshot)
	if s.tellMisprotected(snapshot) {
		next = snapshot.Time
	}
	return next
}

func (s *Starter) record(of metav1.Object, object runtime.Object, t telling) {
	if of.GetDeletionTimestamp() == nil {
		s.Events.Event(object, corev1.EventTypeNormal, t.reason, t.message)
	}
}

// tellPools says of NodePools what in their settings cannot be read, and what follows from that.
func (s *Starter) tellPools(snapshot *plan.Snapshot) {
	said := map[string]uint64{}
	for _, pool := range snapshot.NodePools {
		message := unreadable(pool, snapshot.Time)
		if message == "" {
			continue
		}
		said[pool.Name] = markOf(message)
		if s.verdicts.pools[pool.Name] != said[pool.Name] {
			s.Events.Event(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID},
				corev1.EventTypeWarning, eventInvalidSchedule, message)
		}
	}
	s.verdicts.pools = said
}

// unreadable says which settings of a NodePool cannot be read, and what follows from that; empty if all can.
func unreadable(pool *karpv1.NodePool, now time.Time) string {
	var keeping, sentences []string
	add := func(err error) {
		if err != nil && !slices.Contains(keeping, err.Error()) {
			keeping = append(keeping, err.Error())
		}
	}
	for _, reason := range plan.DisruptionReasons() {
		_, err := pool.AllowedDisruptions(now, 1, reason)
		add(err)
	}
	_, err := pool.MinimumNodeAge()
	add(err)
	if len(keeping) > 0 {
		sentences = append(sentences, "nodes are kept because of what cannot be read: "+strings.Join(keeping, "; "))
	}
	if _, err := pool.Packing(); err != nil {
		sentences = append(sentences, "pods are packed as the worker's --packing says, because "+err.Error())
	}
	return shortened(strings.ReplaceAll(strings.Join(sentences, "; "), "\n", "; "))
}

// kindsChanged says that nodes are kept for other kinds of reason than Disruption has written down, often enough for
// people who read it and seldom enough to cost nothing. What passes by itself is no news.
func (v *verdicts) kindsChanged(found plan.Disruption, now time.Time) bool {
	var kinds []string
	for _, verdict := range found.Verdicts {
		switch verdict.Cause {
		case plan.CauseNone, plan.CauseLeaving, plan.CauseNominated, plan.CauseQuiet:
			continue
		}
		if kind := fmt.Sprint(verdict.Reason, " ", verdict.Cause); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	mark := uint64(0)
	if len(kinds) > 0 {
		mark = markOf(strings.Join(kinds, ","))
	}
	if mark == v.kinds || now.Sub(v.kindsAt) < kindsEvery {
		return false
	}
	v.kinds, v.kindsAt = mark, now
	return true
}
