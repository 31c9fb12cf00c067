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
	// kindsEvery is how often at most Disruption is woken only so that its details tell what keeps nodes.
	kindsEvery = 10 * time.Minute
)

// verdicts remembers what was said of which node, so that a sentence is said once, until it changes. What it remembers
// is a few numbers for each node there is. It is this process's memory: after a restart all is said again.
type verdicts struct {
	nodes map[string][tones]uint64
	pools map[string]uint64
	// misprotected are the values that were complained about.
	misprotected map[types.UID]uint64
	// kinds are the reasons and causes that Disruption was last woken to write down, and when that was.
	kinds   uint64
	kindsAt time.Time
}

// A node has one sentence of each tone.
const (
	toneBlocked = iota
	toneUnconsolidatable
	toneWaits
	tones
)

// telling is one Event to be recorded.
type telling struct {
	node, reason, message string
}

// choose returns what is to be said of nodes, in the order of their names, and whether something is left to say.
func (v *verdicts) choose(found plan.Disruption) (tellings []telling, more bool) {
	said := make(map[string][tones]uint64, len(v.nodes))
	nodes := 0
	for start := 0; start < len(found.Verdicts); {
		end := start
		for end < len(found.Verdicts) && found.Verdicts[end].Node == found.Verdicts[start].Node {
			end++
		}
		of := found.Verdicts[start:end]
		start = end
		before := v.nodes[of[0].Node]
		now, any := before, false
		for tone, sentence := range sentences(of) {
			mark := markOf(sentence.message)
			if sentence.message == "" || mark == before[tone] {
				continue
			}
			if nodes == verdictsMost {
				more = true
				continue
			}
			now[tone], any = mark, true
			tellings = append(tellings, telling{of[0].Node, sentence.reason, sentence.message})
		}
		if any {
			nodes++
		}
		if now != [tones]uint64{} {
			said[of[0].Node] = now
		}
	}
	v.nodes = said
	return tellings, more
}

// sentence is what an Event says.
type sentence struct{ reason, message string }

// sentences are what there is to say of a node, given its verdicts in the order of the reasons: what blocks it for the
// first reason that applies, what speaks against consolidation, and what time will tell.
func sentences(of []plan.Verdict) [tones]sentence {
	var said [tones]sentence
	say := func(tone int, reason, message string) {
		if said[tone].message == "" {
			said[tone] = sentence{reason, shortened(message)}
		}
	}
	for _, v := range of {
		consolidation := v.Reason == karpv1.DisruptionReasonUnderutilized || v.Reason == karpv1.DisruptionReasonEmpty
		switch v.Cause {
		case plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget:
			say(toneBlocked, eventBlocked, before(v.Reason)+v.Message)
		case plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer:
			switch {
			case !consolidation:
				say(toneBlocked, eventBlocked, before(v.Reason)+v.Message)
			case v.Reason == karpv1.DisruptionReasonUnderutilized || v.Cause == plan.CauseBuffer:
				say(toneUnconsolidatable, eventUnconsolidable, v.Message)
			}
		case plan.CauseQuiet:
			say(toneWaits, eventBlocked, before(v.Reason)+v.Message)
		}
	}
	return said
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

// tell records Events about the nodes that stay and the NodePools whose settings cannot be read. It says whether there
// is more to tell.
func (s *Starter) tell(snapshot *plan.Snapshot, found plan.Disruption) (more bool) {
	if s.Events == nil {
		return false
	}
	tellings, more := s.verdicts.choose(found)
	names := make(map[string]string, len(tellings))
	for _, n := range snapshot.Nodes {
		if n.Claim != "" {
			names[n.Claim] = n.Name
		}
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
	return s.tellMisprotected(snapshot) || more
}

func (s *Starter) record(of metav1.Object, object runtime.Object, t telling) {
	if of.GetDeletionTimestamp() == nil {
		s.Events.Event(object, corev1.EventTypeNormal, t.reason, t.message)
	}
}

// tellPools says of NodePools that something in their settings keeps all their nodes.
func (s *Starter) tellPools(snapshot *plan.Snapshot) {
	said := map[string]uint64{}
	for _, pool := range snapshot.NodePools {
		var problems []string
		add := func(err error) {
			if err != nil && !slices.Contains(problems, err.Error()) {
				problems = append(problems, err.Error())
			}
		}
		for _, reason := range plan.DisruptionReasons() {
			_, err := pool.AllowedDisruptions(snapshot.Time, 1, reason)
			add(err)
		}
		_, err := pool.MinimumNodeAge()
		add(err)
		if len(problems) == 0 {
			continue
		}
		message := shortened("nodes are kept because of what cannot be read: " + strings.ReplaceAll(strings.Join(problems, "; "), "\n", "; "))
		said[pool.Name] = markOf(message)
		if s.verdicts.pools[pool.Name] != said[pool.Name] {
			s.Events.Event(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID},
				corev1.EventTypeWarning, eventInvalidSchedule, message)
		}
	}
	s.verdicts.pools = said
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
