package activities

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// confirmedAtOnce limits how many nodes the planner is asked about in one question.
const confirmedAtOnce = 200

// confirmer asks the planner about nodes that are about to be removed. Hundreds of replacements may reach this point at the
// same moment, for example when all nodes of a cluster drift, and each question simulates the whole cluster. So the
// confirmer asks one question at a time, which bounds the memory, and asks it for all replacements that wait, which bounds
// the time.
type confirmer struct {
	mu      sync.Mutex
	asking  bool
	waiting []*leave
}

// leave is the request of a replacement to remove nodes, given by the names of their claims.
type leave struct {
	replacement string
	reason      karpv1.DisruptionReason
	claims      []string
	// gone is closed when nobody waits for the answer any more.
	gone <-chan struct{}
	// answer receives once.
	answer chan leaveAnswer
}

// leaveAnswer holds what keeps nodes from being removed, or why that is not known.
type leaveAnswer struct {
	verdicts []plan.Verdict
	err      error
}

// tell delivers an answer, unless the leave already has one.
func (l *leave) tell(a leaveAnswer) {
	select {
	case l.answer <- a:
	default:
	}
}

// confirm returns what keeps nodes of a replacement from being removed. ask asks the planner about several leaves with the
// same reason. Callers that have given up waiting are left out of the question.
func (c *confirmer) confirm(ctx context.Context, replacement string, reason karpv1.DisruptionReason, claims []string, ask func(context.Context, []*leave) []plan.Verdict) ([]plan.Verdict, error) {
	l := &leave{replacement: replacement, reason: reason, claims: claims, gone: ctx.Done(), answer: make(chan leaveAnswer, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, l)
	first := !c.asking
	c.asking = true
	c.mu.Unlock()
	if first {
		// The others' answers must not depend on whether this caller still waits.
		go c.answer(func(leaves []*leave) []plan.Verdict { return ask(context.WithoutCancel(ctx), leaves) })
	}
	select {
	case a := <-l.answer:
		return a.verdicts, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer answers leaves until none is waiting.
func (c *confirmer) answer(ask func([]*leave) []plan.Verdict) {
	for {
		leaves := c.next()
		if len(leaves) == 0 {
			return
		}
		answerSafely(leaves, ask)
	}
}

// answerSafely turns a panic of the planner into an error for the leave that causes it, and for no other.
func answerSafely(leaves []*leave, ask func([]*leave) []plan.Verdict) {
	defer func() {
		panicked := recover()
		switch {
		case panicked == nil:
		case len(leaves) == 1:
			leaves[0].tell(leaveAnswer{err: fmt.Errorf("the planner panicked: %v\n%s", panicked, debug.Stack())})
		default:
			for _, l := range leaves {
				answerSafely([]*leave{l}, ask)
			}
		}
	}()
	answerTogether(leaves, ask)
}

// next takes the first waiting leave and others with the same reason. If none is waiting, it ends the round.
func (c *confirmer) next() []*leave {
	c.mu.Lock()
	defer c.mu.Unlock()
	var taken, rest []*leave
	nodes := 0
	for _, l := range c.waiting {
		switch {
		case l.abandoned():
		case len(taken) == 0 || l.reason == taken[0].reason && nodes+len(l.claims) <= confirmedAtOnce:
			taken, nodes = append(taken, l), nodes+len(l.claims)
		default:
			rest = append(rest, l)
		}
	}
	c.waiting, c.asking = rest, len(taken) > 0
	return taken
}

// answerTogether asks about several leaves at once. If pods find no room among so many, it asks once more about each leave
// that was refused. While something protects a node, the planner does not say yet whether the pods of the others have room.
func answerTogether(leaves []*leave, ask func([]*leave) []plan.Verdict) {
	for len(leaves) > 0 {
		verdicts := ask(leaves)
		crowded := slices.ContainsFunc(verdicts, func(v plan.Verdict) bool { return v.Cause == plan.CauseRoom })
		var kept, rest []*leave
		for _, l := range leaves {
			switch own := l.among(verdicts); {
			case len(own) == 0:
				rest = append(rest, l)
			case crowded && len(leaves) > 1:
				kept = append(kept, l)
			default:
				l.tell(leaveAnswer{verdicts: own})
			}
		}
		if crowded || len(rest) == len(leaves) {
			for _, l := range rest {
				l.tell(leaveAnswer{})
			}
			rest = nil
		}
		for _, l := range kept {
			if !l.abandoned() {
				l.tell(leaveAnswer{verdicts: ask([]*leave{l})})
			}
		}
		leaves = rest
	}
}

// among returns the verdicts that are about nodes of the leave.
func (l *leave) among(verdicts []plan.Verdict) []plan.Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v plan.Verdict) bool { return !slices.Contains(l.claims, v.Node) })
}

func (l *leave) abandoned() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}
