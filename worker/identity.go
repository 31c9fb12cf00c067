package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
)

// identityEvery is how often a worker checks that its cluster is still the one it was started for.
const identityEvery = 20 * time.Second

// errOtherCluster ends a worker whose cluster was recreated: everything it has in memory belongs to the old one.
var errOtherCluster = errors.New("the cluster is another one by now")

// clusterUID returns the UID of the namespace kube-system, which lives as long as the cluster and so distinguishes it from
// another of the same name. It waits for an API server that does not answer yet.
func clusterUID(ctx context.Context, client kube.Reader) (string, error) {
	for {
		var system corev1.Namespace
		err := client.Get(ctx, kube.ObjectKey{Name: metav1.NamespaceSystem}, &system)
		if err == nil {
			return string(system.UID), nil
		}
		if smithytime.SleepWithContext(ctx, time.Second) != nil {
			return "", fmt.Errorf("read the UID of namespace %s: %w", metav1.NamespaceSystem, err)
		}
	}
}

// watchIdentity returns errOtherCluster once the cluster has another UID.
func watchIdentity(ctx context.Context, client kube.Reader, uid string) error {
	ticker := time.NewTicker(identityEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if now, err := clusterUID(ctx, client); err == nil && now != uid {
			return fmt.Errorf("%w: the UID of namespace %s was %s and is %s", errOtherCluster, metav1.NamespaceSystem, uid, now)
		}
	}
}
