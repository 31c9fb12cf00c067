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

// confirmedAtOnce bounds the nodes that the planner is asked about in one question.
const confirmedAtOnce = 200

// confirmer asks the planner about nodes that are about to go. Hundreds of replacements may come this far at the same
// moment, as where all nodes of a cluster drift, and each question takes a simulation of the whole cluster. So one question
// is asked at a time, which bounds the memory, and it is asked for all who wait, which bounds the time.
type confirmer struct {
	mu      sync.Mutex
	asking  bool
	waiting []*leave
}

// leave is what a replacement asks for: that its nodes may go, by the names of their claims.
type leave struct {
	replacement string
	reason      karpv1.DisruptionReason
	claims      []string
	// gone is closed when nobody waits for the answer any more.
	gone <-chan struct{}
	// answer receives once.
	answer chan leaveAnswer
}

// leaveAnswer is what keeps nodes from going, or why that is not known.
type leaveAnswer struct {
	verdicts []plan.Verdict
	err      error
}

// tell answers, unless the leave has its answer.
func (l *leave) tell(a leaveAnswer) {
	select {
	case l.answer <- a:
	default:
	}
}

// confirm says what keeps nodes of a replacement from going. ask asks the planner about several leaves of one reason. Who
// gives up waiting is not asked for.
func (c *confirmer) confirm(ctx context.Context, replacement string, reason karpv1.DisruptionReason, claims []string, ask func(context.Context, []*leave) []plan.Verdict) ([]plan.Verdict, error) {
	l := &leave{replacement: replacement, reason: reason, claims: claims, gone: ctx.Done(), answer: make(chan leaveAnswer, 1)}
	c.mu.Lock()
	c.waiting = append(c.waiting, l)
	first := !c.asking
	c.asking = true
	c.mu.Unlock()
	if first {
		// The others' answers do not depend on whether this one is still waited for.
		go c.answer(func(leaves []*leave) []plan.Verdict { return ask(context.WithoutCancel(ctx), leaves) })
	}
	select {
	case a := <-l.answer:
		return a.verdicts, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// answer answers until nobody waits.
func (c *confirmer) answer(ask func([]*leave) []plan.Verdict) {
	for {
		leaves := c.next()
		if len(leaves) == 0 {
			return
		}
		answerSafely(leaves, ask)
	}
}

// answerSafely has a panic of the planner be an error of who asked for what it panics at, and of nobody else.
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

// next takes the first of those who wait, and others of its reason. It ends the asking where nobody does.
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

// answerTogether asks about several leaves at once, and once more about each of those whose pods find no place among so
// many. Where something protects a node, the planner says nothing yet of whether the pods of the others have a place.
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

// among are those of the verdicts that are about nodes of the leave.
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
