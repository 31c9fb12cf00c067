package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

func (p *pass) recordEviction(ctx context.Context, pod *corev1.Pod, deleted bool) {
	logs.Of(ctx, p.Log).Info("pod removed from node", zap.String("node", p.in.Node), zap.String("claim", p.in.Claim), zap.String("namespace", pod.Namespace),
		zap.String("pod", pod.Name), zap.String("reason", p.in.Reason), zap.Bool("forced", deleted))
	reason := p.in.Reason
	p.counts.podDrained(reason)
	if deleted {
		reason = "the deadline of the drain"
	}
	p.tell(pod, corev1.EventTypeNormal, eventEvicted, fmt.Sprintf("Evicted from node %s: %s", p.in.Node, reason))
}

// report updates p.result with what is left and what blocks.
func (p *pass) report(now time.Time, s situation) {
	blockers := slices.Concat(s.volumes, s.unplaced)
	for _, block := range s.Blocks {
		blockers = append(blockers, workflows.Blocker{Pod: block.Pod.Key(), Cause: string(block.Cause), By: block.By, Message: block.Message})
	}
	for _, pod := range s.Evict {
		if r := p.evictions[pod.UID]; r != nil && r.blocker != nil {
			blockers = append(blockers, *r.blocker)
		}
	}
	for _, pod := range s.Delete {
		if r := p.deletions[pod.Pod.UID]; r != nil && r.blocker != nil {
			blockers = append(blockers, *r.blocker)
		}
	}
	if p.past(now) {
		blockers = p.addRemaining(blockers)
	}
	slices.SortFunc(blockers, func(a, b workflows.Blocker) int {
		return cmp.Or(strings.Compare(a.Pod, b.Pod), strings.Compare(a.Cause, b.Cause), strings.Compare(a.By, b.By))
	})
	if digest := digestOf(blockers); digest != p.digest {
		p.digest, p.digestSince = digest, now
	}
	p.blockers = blockers
	p.result = workflows.EvictResult{Evicted: int(p.evicted.Load()), Left: s.Left, Digest: p.digest, Blockers: blockers[:min(len(blockers), workflows.MaxBlockers)]}
}

// addRemaining adds the pods that still exist after the deadline although they were deleted.
func (p *pass) addRemaining(blockers []workflows.Blocker) []workflows.Blocker {
	named := map[string]bool{}
	for _, blocker := range blockers {
		named[blocker.Pod] = true
	}
	for uid := range p.deletions {
		pod := p.pods.pods[uid]
		if pod == nil || named[pod.Namespace+"/"+pod.Name] {
			continue
		}
		by := "kubelet"
		if len(pod.Finalizers) > 0 {
			by = pod.Finalizers[0]
		}
		blockers = append(blockers, workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByShutdown, By: by,
			Message: "was deleted because of the deadline and is not gone yet"})
	}
	return blockers
}

// digestOf identifies a sorted list of blockers by pod, cause and By, ignoring the numbers in their messages.
func digestOf(blockers []workflows.Blocker) string {
	if len(blockers) == 0 {
		return ""
	}
	hash := sha256.New()
	for _, blocker := range blockers {
		fmt.Fprintf(hash, "%q%q%q", blocker.Pod, blocker.Cause, blocker.By)
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// announce tells people with kubectl what blocks the drain, if that has changed.
func (p *pass) announce(ctx context.Context) {
	if p.digest == "" || p.digest == p.in.Known {
		return
	}
	message := heldUp(p.result)
	logs.Of(ctx, p.Log).Info("drain is blocked", zap.String("node", p.in.Node), zap.String("claim", p.in.Claim), zap.String("blockers", message))
	p.tell(p.node, corev1.EventTypeWarning, eventFailedDraining, message)
}

// heldUp describes in one sentence how many pods are left and what the first blockers are.
func heldUp(result workflows.EvictResult) string {
	var reasons []string
	for _, blocker := range result.Blockers[:min(3, len(result.Blockers))] {
		reasons = append(reasons, strings.TrimSpace(blocker.Pod+" "+blocker.Message))
	}
	if more := len(result.Blockers) - len(reasons); more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s left: %s", counted(result.Left, "pod is", "pods are"), strings.Join(reasons, "; "))
}
