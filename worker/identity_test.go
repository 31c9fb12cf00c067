package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
)

// remade is an API server that does not answer at first, and belongs to another cluster after a while.
type remade struct {
	kube.Reader
	began time.Time
}

func (r *remade) Get(_ context.Context, key kube.ObjectKey, object kube.Object, _ ...kube.GetOption) error {
	uid := types.UID("old")
	switch age := time.Since(r.began); {
	case age < 5*time.Second:
		return errors.New("connection refused")
	case age > time.Hour:
		uid = "new"
	}
	*object.(*corev1.Namespace) = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: uid}}
	return nil
}

func TestAWorkerEndsWithItsCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := &remade{began: time.Now()}
		uid, err := clusterUID(t.Context(), server)
		if err != nil || uid != "old" {
			t.Fatalf("UID %q, error %v", uid, err)
		}
		if err := watchIdentity(t.Context(), server, uid); !errors.Is(err, errOtherCluster) {
			t.Errorf("ended with %v", err)
		}
		if age := time.Since(server.began); age > time.Hour+time.Minute {
			t.Errorf("a cluster that was made again was noticed after %s", age-time.Hour)
		}
	})
}
