package nominate

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// nominationPatience is how long a nomination may take: soon after, the kube-scheduler has decided without it.
	nominationPatience = 10 * time.Second
	// persistence is how often a nomination is tried in a row if the API server is too busy for it, and persistencePause
	// the pause after the first attempt, which doubles each time.
	persistence      = 5
	persistencePause = 250 * time.Millisecond
	// maxSeen is how long to wait until a nomination comes back from the API server, and seenPause the pause between two
	// checks.
	maxSeen   = 200 * time.Millisecond
	seenPause = 5 * time.Millisecond
)

// send writes nominations until ctx ends.
func (n *Nominator) send(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-n.queue:
			if n.Works() {
				_, _ = n.nominate(ctx, next.pod, next.node)
			}
		}
	}
}

// nominate writes one nomination if the pod is still pending. It reports whether the nomination was accepted, and if not,
// whether another attempt is worthwhile.
func (n *Nominator) nominate(ctx context.Context, pod *plan.Pod, node string) (taken, again bool) {
	if n.limit.Wait(ctx) != nil {
		return false, false // there is no time left
	}
	select {
	case n.sending <- struct{}{}:
		defer func() { <-n.sending }()
	case <-ctx.Done():
		return false, false
	}
	if now := n.mirror.Pod(pod.Namespace, pod.Name); now == nil || now.UID != pod.UID || now.Node != "" {
		return false, false
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"nominatedNodeName": node},
	})
	if err != nil {
		return false, false
	}
	ctx, stop := context.WithTimeout(ctx, nominationPatience)
	defer stop()
	// Only the metadata is returned, and nothing reads it.
	object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = n.kube.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	switch {
	case err == nil:
		n.log.Debug("nominated", zap.String("pod", pod.Key()), zap.String("node", node))
		return true, false
	case apierrors.IsForbidden(err):
		if n.works.Swap(false) {
			n.log.Warn("pods are no longer nominated to the nodes they are planned for: the worker has no permission to patch pods/status", zap.Error(err))
		}
	default:
		// The pod has been bound, deleted or replaced meanwhile, or the API server is too busy.
		n.log.Debug("a pod was not nominated", zap.String("pod", pod.Key()), zap.String("node", node), zap.Error(err))
		return false, !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err)
	}
	return false, false
}

// persist nominates a pod, a few times if the API server is too busy, and reports whether the nomination was accepted.
func (n *Nominator) persist(ctx context.Context, pod *plan.Pod, node string) bool {
	for try := range persistence {
		taken, again := n.nominate(ctx, pod, node)
		if !again {
			return taken
		}
		if smithytime.SleepWithContext(ctx, persistencePause<<try) != nil {
			return false
		}
	}
	return false
}

// awaitSeen waits until the mirror shows a nomination, or that the pod no longer needs one. What this process has seen, the
// kube-scheduler has seen, too, or is about to.
func (n *Nominator) awaitSeen(ctx context.Context, pod *plan.Pod, node string) {
	ctx, stop := context.WithTimeout(ctx, maxSeen)
	defer stop()
	for {
		now := n.mirror.Pod(pod.Namespace, pod.Name)
		if now == nil || now.UID != pod.UID || now.Node != "" || now.NominatedNode == node {
			return
		}
		if smithytime.SleepWithContext(ctx, seenPause) != nil {
			return
		}
	}
}

// nominateAll nominates pods to a node, and returns those whose nomination was taken.
func (n *Nominator) nominateAll(ctx context.Context, pods []*cluster.Pod, node string) []*plan.Pod {
	taken := make([]*plan.Pod, len(pods))
	var sending errgroup.Group
	sending.SetLimit(nominators)
	for i, pod := range pods {
		if !n.due(pod.Pod, node) {
			continue
		}
		sending.Go(func() error {
			if n.persist(ctx, pod.Pod, node) {
				taken[i] = pod.Pod
			}
			return nil
		})
	}
	_ = sending.Wait()
	return slices.DeleteFunc(taken, func(pod *plan.Pod) bool { return pod == nil })
}
