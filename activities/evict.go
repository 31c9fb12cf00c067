package activities

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// heedClaim deletes the Node along with a claim that is being deleted. It also determines until when pods may wait for a
// place elsewhere, and how long small pods have to wait. Small pods wait only in a drain for which places were planned.
func (p *pass) heedClaim(ctx context.Context) error {
	places := plan.PlacesPods(karpv1.DisruptionReason(p.in.Reason))
	notice := workflows.GivesNotice(p.in.Reason)
	if p.in.Claim == "" || !places && !notice && !p.node.DeletionTimestamp.IsZero() {
		return nil
	}
	var claim karpv1.NodeClaim
	if err := p.Client.Get(ctx, client.ObjectKey{Name: p.in.Claim}, &claim); err != nil {
		return ignoreNotFound("get NodeClaim "+p.in.Claim, err)
	}
	ended := claim.DeletionTimestamp
	if ended == nil {
		return nil
	}
	if err := p.deleteNode(ctx, p.node); err != nil {
		return err
	}
	if notice {
		if p.ends = claim.EndsAt(); p.ends.IsZero() {
			p.ends = ended.Add(waitsUnannounced)
		}
	}
	if places {
		// The API server's clock may be ahead of Temporal's; the difference must not prolong the wait.
		p.smallFrom = ended.Add(largeFirst)
		if latest := p.started.Add(largeFirst); latest.Before(p.smallFrom) {
			p.smallFrom = latest
		}
	}
	return nil
}

func (p *pass) close() {
	p.pods.close()
	p.volumes.close()
}

// run evicts until there is something to report. It fills p.result also when it returns an error or is cancelled.
func (p *pass) run(ctx context.Context) error {
	if err := p.heedClaim(ctx); err != nil {
		return err
	}
	if err := p.pods.list(ctx); err != nil {
		return err
	}
	for {
		if _, err := p.keepClosed(ctx, p.pods.latest); err != nil {
			return err
		}
		step, err := p.step(ctx)
		if err != nil {
			return err
		}
		if accepted := p.ask(ctx, step.DrainStep); ctx.Err() != nil {
			return ctx.Err()
		} else if accepted {
			continue
		}
		now := p.now()
		p.report(now, step)
		held := p.held(now, step)
		if step.ready.IsZero() && (p.over(now) || p.newsworthy(now) || held && p.digest == p.in.Known) {
			p.announce(ctx)
			if p.result.Waiting = held; held {
				p.result.Again = step.Next
				return p.note(ctx, noteBlocked(now))
			}
			return nil
		}
		if step.ready.IsZero() {
			if anew, err := p.pods.follow(ctx); err != nil {
				return err
			} else if anew {
				continue
			}
		}
		if p.pods.gone {
			p.result.Gone = true
			return nil
		}
		if step.ready.IsZero() || now.Before(step.ready) {
			if err := p.wait(ctx, p.wake(step)); err != nil {
				return err
			}
			continue
		}
		if done, err := p.confirm(ctx); done || err != nil {
			return err
		}
	}
}

// step plans the next step over the pods as they are now.
func (p *pass) step(ctx context.Context) (situation, error) {
	pods := make([]plan.DrainPod, 0, len(p.pods.pods))
	for _, pod := range p.pods.pods {
		pods = append(pods, p.interner.DrainPod(pod))
	}
	s := situation{DrainStep: plan.Drain(pods, plan.DrainTerms{
		Now: p.now(), Deadline: p.in.Deadline, Force: p.in.Force, Cordon: cordonTaint(p.in.Claim != ""),
		Allocatable: p.interner.Node(p.node).Allocatable, SmallFrom: p.smallFrom})}
	if s.Left > 0 {
		s.Evict, s.unplaced = p.awaitPlaces(s.Evict)
		return s, nil
	}
	if err := p.volumes.follow(ctx); err != nil {
		return s, err
	}
	staying := make([]*corev1.Pod, len(s.Staying))
	for i, pod := range s.Staying {
		staying[i] = p.pods.pods[pod.UID]
	}
	var err error
	if s.volumes, err = p.volumes.blockers(ctx, staying); err != nil {
		return s, err
	}
	if len(s.volumes) == 0 {
		s.ready = p.cordoned.Add(bindingSettle)
		if registered := p.started.Add(deregistration); p.in.Claim != "" && p.evicted.Load() > 0 && registered.After(s.ready) {
			s.ready = registered
		}
	}
	return s, nil
}

// keepClosed closes the node of a claim again if somebody has opened it, for example by removing the taint: the evicted
// pods would come back to it, and the last of them would be lost with the instance. A drain is taken back by an order. A
// node that is not Tenon's may be opened by its owner, as with kubectl drain. keepClosed reports whether the node was open.
func (p *pass) keepClosed(ctx context.Context, seen *corev1.Node) (bool, error) {
	if p.in.Claim == "" || seen == nil || disrupted(seen) {
		return false, nil
	}
	node, err := p.objects().change(ctx, seen, "cordon", cordonClaimed)
	if err != nil {
		return false, err
	}
	if !disrupted(node) { // the node is gone, so there is nothing to close
		p.pods.latest = nil
		return false, nil
	}
	logs.Of(ctx, p.Log).Info("tainted a draining node again after somebody had removed the taint", zap.String("node", node.Name), zap.String("claim", p.in.Claim))
	p.node, p.pods.latest, p.cordoned = node, node, p.now()
	return true, nil
}

// confirm checks once more: the node is drained if the API server itself shows it closed and without a pod that counts.
func (p *pass) confirm(ctx context.Context) (bool, error) {
	node, err := p.objects().node(ctx, p.in.Node, string(p.node.UID))
	if err != nil {
		return false, err
	}
	if opened, err := p.keepClosed(ctx, node); opened || err != nil {
		return false, err
	}
	if err := p.pods.list(ctx); err != nil {
		return false, err
	}
	step, err := p.step(ctx)
	if err != nil || step.ready.IsZero() {
		return false, err
	}
	p.result.Done = true
	return true, p.note(ctx, forgetBlocked)
}

// ask sends the requests that are due, several at a time, and reports whether any was accepted.
func (p *pass) ask(ctx context.Context, step plan.DrainStep) bool {
	type due struct {
		*request
		pod    *corev1.Pod
		delete bool
		grace  time.Duration
		answer answer
	}
	now := p.now()
	p.budgets.renew()
	var asking []*due
	for _, pod := range step.Delete {
		if r := requestOf(p.deletions, pod.Pod.UID); !r.next.After(now) {
			asking = append(asking, &due{request: r, pod: p.pods.pods[pod.Pod.UID], delete: true, grace: pod.Grace})
		}
	}
	for _, pod := range step.Evict {
		if r := requestOf(p.evictions, pod.UID); !r.next.After(now) {
			asking = append(asking, &due{request: r, pod: p.pods.pods[pod.UID]})
		}
	}
	var group errgroup.Group
	group.SetLimit(requestsAtOnce)
	for _, due := range asking {
		group.Go(func() error {
			if due.delete {
				due.answer = p.remove(ctx, due.pod, due.grace)
			} else {
				due.answer = p.evict(ctx, due.pod, &p.budgets, due.refused() || p.in.Known != "")
			}
			return nil
		})
	}
	_ = group.Wait()
	accepted := false
	for _, due := range asking {
		due.take(due.answer, p.now())
		if due.answer.accepted && !due.counted {
			accepted, due.counted = true, true
			p.evicted.Add(1)
			p.recordEviction(ctx, due.pod, due.delete)
		}
	}
	return accepted
}

// held reports whether every remaining pod is held by a budget, an annotation or its own slow termination, or waits for a
// pod that is, and nothing is due soon. Then no pass has to wait for a change.
func (p *pass) held(now time.Time, s situation) bool {
	soon := func(at time.Time) bool { return !at.IsZero() && at.Before(now.Add(minRest)) }
	if !p.in.MayWait || s.Left == 0 || len(s.Delete) > 0 || len(s.unplaced) > 0 || soon(s.Next) || soon(p.in.Deadline) {
		return false
	}
	blocked := map[string]bool{}
	for _, blocker := range p.blockers {
		if blocker.Cause == blockedByVolume || blocker.Cause == blockedByError {
			return false
		}
		blocked[blocker.Pod] = true
	}
	for _, pod := range s.Evict {
		if r := p.evictions[pod.UID]; r == nil || !r.refused() {
			return false
		}
	}
	for _, pod := range p.pods.pods {
		if ending := pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodRunning; ending && !blocked[pod.Namespace+"/"+pod.Name] {
			return false
		}
	}
	return len(blocked) > 0
}

// over reports whether the pass has come to its end undecided.
func (p *pass) over(now time.Time) bool {
	return p.past(now) || now.Sub(p.begun) >= passLength
}

// newsworthy reports whether the blockers differ from those the workflow shows, and have settled.
func (p *pass) newsworthy(now time.Time) bool {
	return p.digest != p.in.Known && !now.Before(p.digestSince.Add(p.settle()))
}

func (p *pass) settle() time.Duration {
	onlyVolumes := !slices.ContainsFunc(p.result.Blockers, func(b workflows.Blocker) bool { return b.Cause != blockedByVolume })
	switch {
	case p.in.Known != "":
		return settleNext
	case onlyVolumes:
		return settleVolumes
	}
	return settleFirst
}

// wake returns when the pass has to look again even if nothing happens.
func (p *pass) wake(s situation) time.Time {
	at := p.begun.Add(passLength)
	sooner := func(t time.Time) {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	sooner(s.Next)
	sooner(p.in.Deadline)
	sooner(s.ready)
	if len(s.unplaced) > 0 {
		sooner(p.now().Add(placesEvery))
	}
	for _, pod := range s.Evict {
		sooner(p.evictions[pod.UID].next)
	}
	for _, pod := range s.Delete {
		sooner(p.deletions[pod.Pod.UID].next)
	}
	if p.digest != p.in.Known && s.ready.IsZero() {
		sooner(p.digestSince.Add(p.settle()))
	}
	return at
}

// wait returns when something has happened to the node, its pods or its volumes, or at the given time.
func (p *pass) wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(until.Sub(p.now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	case event, open := <-results(p.pods.podEvents):
		p.pods.pod(event, open)
	case event, open := <-results(p.pods.nodeEvent):
		p.pods.nodeChange(event, open)
	case event, open := <-results(p.volumes.events):
		p.volumes.change(event, open)
	}
	p.rest()
	return nil
}

// rest handles the events that have already arrived, so that a burst of them is planned once.
func (p *pass) rest() {
	for {
		select {
		case event, open := <-results(p.pods.podEvents):
			p.pods.pod(event, open)
		case event, open := <-results(p.pods.nodeEvent):
			p.pods.nodeChange(event, open)
		case event, open := <-results(p.volumes.events):
			p.volumes.change(event, open)
		default:
			return
		}
	}
}

// note changes the node's annotations.
func (p *pass) note(ctx context.Context, edit func(*corev1.Node)) error {
	node, err := p.objects().change(ctx, p.node, "annotate", edit)
	if err == nil {
		p.node = node
	}
	return err
}

// awaitPlaces splits the pods to be evicted from a node whose instance ends with notice. A pod stays for as long as it has
// no place elsewhere and can still end gracefully; the others are to be evicted now.
func (p *pass) awaitPlaces(pods []plan.DrainPod) (going []plan.DrainPod, staying []workflows.Blocker) {
	if p.Elsewhere == nil || p.ends.IsZero() || p.in.Force || len(pods) == 0 {
		return pods, nil
	}
	now := p.now()
	placed, ends := p.Elsewhere(p.in.Claim)
	if !ends.IsZero() && ends.Before(p.ends) {
		p.ends = ends
	}
	for _, pod := range pods {
		until := p.ends.Add(-pod.GracePeriod - lastMoment)
		if !now.Before(until) || placed[pod.UID] || !pod.Reschedulable() {
			going = append(going, pod)
			continue
		}
		staying = append(staying, workflows.Blocker{Pod: pod.Key(), Cause: blockedByPlace, By: "replacement",
			Message: "waits for a place on another node, at most until " + until.UTC().Format(time.RFC3339)})
	}
	return going, staying
}
