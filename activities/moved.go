package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/workflows"
)

// movedEvery is the pause between two checks of moved pods.
const movedEvery = 2 * time.Second

// AwaitMoved waits until the controllers of moved pods have as many Ready pods elsewhere as they had, or want fewer.
func (w *waiter) AwaitMoved(ctx context.Context, in workflows.AwaitMovedInput) (workflows.MovedPods, error) {
	ctx, done := heartbeat(ctx)
	defer done()
	for {
		var missing []string
		for _, owner := range in.Owners {
			lacks, err := w.lacksPods(ctx, owner, in.Nodes)
			if err != nil {
				return workflows.MovedPods{}, err
			}
			if lacks != "" {
				missing = append(missing, lacks)
			}
		}
		if len(missing) == 0 {
			return workflows.MovedPods{}, nil
		}
		if !time.Now().Before(in.Until) {
			return workflows.MovedPods{Missing: fmt.Sprintf("%.*s", maxWhy, strings.Join(missing, "; "))}, nil
		}
		if err := smithytime.SleepWithContext(ctx, movedEvery); err != nil {
			return workflows.MovedPods{}, fmt.Errorf("wait for moved pods: %w", err)
		}
	}
}

// lacksPods describes which pods of a controller are still missing, empty if none are.
func (w *waiter) lacksPods(ctx context.Context, owner workflows.PodOwner, left []string) (string, error) {
	ready, staying := 0, 0
	for _, pod := range w.mirror.PodsOwnedBy(owner.Namespace, owner.Kind, owner.Name) {
		switch {
		case slices.Contains(left, pod.Node):
			staying++
		case pod.Ready:
			ready++
		}
	}
	if staying == 0 && ready >= owner.Pods {
		return "", nil
	}
	wants, err := w.replicas(ctx, owner)
	if err != nil || staying == 0 && ready >= wants {
		return "", err
	}
	return fmt.Sprintf("%s %s/%s has %d of %d pods Ready, and %d to be moved", owner.Kind, owner.Namespace, owner.Name, ready, min(wants, owner.Pods), staying), nil
}

// replicas returns how many pods a controller wants, 0 if it is gone.
func (w *waiter) replicas(ctx context.Context, owner workflows.PodOwner) (int, error) {
	key := client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}
	var wants *int32
	var err error
	switch owner.Kind {
	case "ReplicaSet":
		var set appsv1.ReplicaSet
		err = w.objects.Get(ctx, key, &set)
		wants = set.Spec.Replicas
	case "StatefulSet":
		var set appsv1.StatefulSet
		err = w.objects.Get(ctx, key, &set)
		wants = set.Spec.Replicas
	}
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read %s %s/%s: %w", owner.Kind, owner.Namespace, owner.Name, err)
	case wants == nil:
		return 1, nil
	}
	return int(*wants), nil
}
