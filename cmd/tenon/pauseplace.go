package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// pausePlace is where pauses are kept: on a NodePool, or without a name in the ConfigMap for the whole cluster.
type pausePlace struct {
	kube kube.Client
	pool string
}

func (p *pauseCommand) place(pool string) pausePlace { return pausePlace{p.kube, pool} }

// change rewrites the pauses of a place. If somebody else has written at the same time, it begins anew.
func (p pausePlace) change(ctx context.Context, edit func([]karpv1.Pause) []karpv1.Pause) error {
	again := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, again, func() error {
		if p.pool != "" {
			return p.changePool(ctx, edit)
		}
		return p.changeCluster(ctx, edit)
	})
}

func (p pausePlace) changePool(ctx context.Context, edit func([]karpv1.Pause) []karpv1.Pause) error {
	var pool karpv1.NodePool
	if err := p.kube.Get(ctx, kube.ObjectKey{Name: p.pool}, &pool); err != nil {
		return fmt.Errorf("--pool %s: %w", p.pool, err)
	}
	changed := pool.DeepCopy()
	if text := karpv1.FormatPauses(edit(pool.Pauses())); text == "" {
		delete(changed.Annotations, karpv1.PauseAnnotationKey)
	} else {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, karpv1.PauseAnnotationKey, text)
	}
	if err := p.kube.Patch(ctx, changed, kube.MergeFromWithOptions(&pool, kube.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the pauses of NodePool %s: %w", p.pool, err)
	}
	return nil
}

func (p pausePlace) changeCluster(ctx context.Context, edit func([]karpv1.Pause) []karpv1.Pause) error {
	list := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName}}
	err := p.kube.Get(ctx, kube.ObjectKeyFromObject(&list), &list)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read what is paused: %w", err)
	}
	text := karpv1.FormatPauses(edit(karpv1.ReadPauses(list.Data[karpv1.PauseConfigMapKey])))
	if missing && text == "" {
		return nil
	}
	list.Data = map[string]string{karpv1.PauseConfigMapKey: text}
	if missing {
		err = p.kube.Create(ctx, &list)
	} else {
		err = p.kube.Update(ctx, &list)
	}
	if err != nil {
		return fmt.Errorf("write what is paused into ConfigMap %s/%s: %w", list.Namespace, list.Name, err)
	}
	return nil
}

// clusterPauses reads what is paused in the whole cluster.
func clusterPauses(ctx context.Context, direct kube.Client) ([]karpv1.Pause, error) {
	var list corev1.ConfigMap
	err := direct.Get(ctx, kube.ObjectKey{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName}, &list)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read what is paused: %w", err)
	}
	return karpv1.ReadPauses(list.Data[karpv1.PauseConfigMapKey]), nil
}

// disruptionStop says what stops the disruption of a NodePool's nodes; nil if nothing does.
func (p *pauseCommand) disruptionStop(ctx context.Context, pool string) (*karpv1.Stop, error) {
	everywhere, err := clusterPauses(ctx, p.kube)
	if err != nil {
		return nil, err
	}
	var found karpv1.NodePool
	if pool == "" {
		return karpv1.StopOf(karpv1.PauseDisruption, everywhere, nil, p.now()), nil
	}
	switch err := p.kube.Get(ctx, kube.ObjectKey{Name: pool}, &found); {
	case apierrors.IsNotFound(err):
		return karpv1.StopOf(karpv1.PauseDisruption, everywhere, nil, p.now()), nil
	case err != nil:
		return nil, fmt.Errorf("read NodePool %s: %w", pool, err)
	}
	return karpv1.StopOf(karpv1.PauseDisruption, everywhere, &found, p.now()), nil
}
