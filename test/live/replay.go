package main

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/cloud"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// replayed sends a spent token again and returns the answer, and the instances of the launch group that the first answer did
// not name.
func (l *live) replayed(ctx context.Context, first *spent) (again *answer, anew []string, err error) {
	again, sent := l.send(ctx, first.Request)
	if again == nil {
		return nil, nil, sent
	}
	ids, err := l.launchedIn(ctx, first.Request.Group, len(first.Answer.Instances))
	if err != nil {
		return again, nil, err
	}
	for _, id := range ids {
		if !slices.Contains(first.Answer.Instances, id) {
			anew = append(anew, id)
		}
	}
	return again, anew, nil
}

// same reports whether an answer equals the first one.
func (a *answer) same(first *answer) bool {
	return a.Fleet == first.Fleet && a.Error == first.Error && slices.Equal(a.Instances, first.Instances) && slices.Equal(a.Errors, first.Errors)
}

// judgeReplay: nothing new may be launched, since Tenon sends a token again when it does not know the outcome. If the answer
// is the first one's, that spares Tenon the search by launch group, and no more.
func judgeReplay(first, again *answer, anew []string) outcome {
	switch {
	case len(anew) > 0:
		return fail("the same token launched %v anew: %s", anew, again)
	case again.same(first):
		return pass("the same answer: %s", again)
	case len(first.Instances) > 0 && slices.Equal(again.Instances, first.Instances):
		return pass("the same instances in another answer: %s, at first %s", again, first)
	}
	return observe("nothing was launched anew; the answer is %s, at first %s", again, first)
}

// spentBy returns the launch of a step, if it was answered.
func (l *live) spentBy(step string) (*spent, outcome, bool) {
	s := l.state.find(step)
	if s == nil || s.Answer == nil {
		return nil, skip("%q has no answer to compare with", step), false
	}
	return s, outcome{}, true
}

// replayOf returns a step that replays the token of another step.
func replayOf(step string) func(context.Context, *live) outcome {
	return func(ctx context.Context, l *live) outcome {
		first, o, ok := l.spentBy(step)
		if !ok {
			return o
		}
		again, anew, err := l.replayed(ctx, first)
		if err != nil {
			return fail("%v", err)
		}
		return judgeReplay(first.Answer, again, anew)
	}
}

func replayAfterSuccess(ctx context.Context, l *live) outcome { return replayOf(stepOnDemand)(ctx, l) }

// mismatch: "If you retry a request with the same client token but different parameters, it fails with an
// IdempotentParameterMismatch error" (developer guide, "Ensuring idempotency in Amazon EC2 API requests").
func mismatch(ctx context.Context, l *live) outcome {
	first, o, ok := l.spentBy(stepOnDemand)
	if !ok {
		return o
	}
	other := *first
	other.Request.Count++
	again, sent := l.send(ctx, other.Request)
	if again == nil {
		return fail("%v", sent)
	}
	ids, err := l.launchedIn(ctx, other.Request.Group, len(first.Answer.Instances))
	switch {
	case err != nil:
		return fail("%v", err)
	case len(ids) > len(first.Answer.Instances):
		return fail("it launched: %s; the group has %v", again, ids)
	case cloud.KindOf(sent) != cloud.ParameterMismatch:
		return fail("%s counts as %s, want %s", again, cloud.KindOf(sent), cloud.ParameterMismatch)
	}
	return pass("refused: %s", again)
}

// inFlight sends one request twice at once, as happens when a reply is late. The documentation does not say what the second
// returns.
func inFlight(ctx context.Context, l *live) outcome {
	s, err := l.prepare(ctx, stepInFlight, 1, l.class, l.machine.offerings(karpv1.CapacityTypeOnDemand))
	if err != nil {
		return fail("%v", err)
	}
	if err := l.spend(s); err != nil {
		return fail("%v", err)
	}
	var answers [2]*answer
	var group errgroup.Group
	for n := range answers {
		group.Go(func() error {
			var sent error
			if answers[n], sent = l.send(ctx, s.Request); answers[n] == nil {
				return sent
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return fail("%v", err)
	}
	// The answer with instances counts as the first.
	first := answers[0]
	if len(first.Instances) == 0 && len(answers[1].Instances) > 0 {
		first = answers[1]
	}
	if err := l.answered(s, first, nil); err != nil {
		return fail("%v", err)
	}
	again, anew, err := l.replayed(ctx, s)
	if err != nil {
		return fail("%v", err)
	}
	said := fmt.Sprintf("%s; at the same time %s; afterwards %s", answers[0], answers[1], again)
	ids := append(slices.Clone(first.Instances), anew...)
	if len(ids) > 0 {
		if err := l.terminate(ctx, ids); err != nil {
			return fail("%v", err)
		}
	}
	switch {
	case len(ids) > 1:
		return fail("%d instances of one token: %s", len(ids), said)
	case len(ids) == 0:
		return observe("no instance: %s", said)
	}
	return pass("one instance: %s", said)
}

// replayAfterEnd: RunInstances has the code IdempotentInstanceTerminated ("Error codes for the Amazon EC2 API"); for fleets
// the documentation says nothing.
func replayAfterEnd(ctx context.Context, l *live) outcome {
	first, o, ok := l.spentBy(stepOnDemand)
	if !ok || len(first.Answer.Instances) == 0 {
		return o
	}
	if err := l.terminate(ctx, first.Answer.Instances); err != nil {
		return fail("%v", err)
	}
	return l.see(ctx, first)
}

// see replays a token and reports the result, whatever it is; it terminates what was launched anew.
func (l *live) see(ctx context.Context, first *spent) outcome {
	again, sent := l.send(ctx, first.Request)
	if again == nil {
		return fail("%v", sent)
	}
	// The first answer's instances may no longer be listed.
	ids, err := l.launchedIn(ctx, first.Request.Group, 0)
	if err != nil {
		return fail("%v", err)
	}
	anew := slices.DeleteFunc(append(ids, again.Instances...), func(id string) bool { return slices.Contains(first.Answer.Instances, id) })
	slices.Sort(anew)
	if anew = slices.Compact(anew); len(anew) > 0 {
		if err := l.terminate(ctx, anew); err != nil {
			return fail("%v", err)
		}
		return observe("%d instances launched anew: %s, at first %s", len(anew), again, first.Answer)
	}
	if again.same(first.Answer) {
		return observe("the same answer: %s", again)
	}
	return observe("nothing launched; the answer is %s, at first %s", again, first.Answer)
}

// later returns a step that replays a token of the previous run.
func later(step string) func(context.Context, *live) outcome {
	return func(ctx context.Context, l *live) outcome {
		first, o, ok := l.spentBy(step)
		if !ok {
			return o
		}
		return l.see(ctx, first)
	}
}
