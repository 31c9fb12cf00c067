package ec2sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// machines collects the data from which the Nodes of instances are built.
type machines struct {
	account   *account
	catalogue *Catalogue
	images    *images
	userData  *table[userData]
	endpoint  string // of the cluster
	caKnown   bool
}

// of collects the data for one instance.
func (ms *machines) of(i *instance) machine {
	m := machine{
		instance: *i, itype: ms.catalogue.Type(i.Type), image: ms.images.find(i.Image), region: ms.account.region, zoneID: ms.account.zoneOf(i).ID,
		hostname: ms.account.privateDNS(i), endpoint: ms.endpoint, caKnown: ms.caKnown,
	}
	if u := ms.userData.rows[i.UserData]; u != nil {
		m.userData = u.Text
	}
	m.kubeletVer = "v" + m.image.Kubernetes + ".0-eks-simulated"
	return m
}

// kubelets simulates the kubelets of the instances as far as the cluster sees them start and stop. It creates the Node of
// a booted instance, once. When the instance ends, it removes the label by which kwok keeps the Node alive. The Node
// itself stays, NotReady, for others to remove. A Node that is deleted while its instance runs does not come back, since
// a kubelet registers only at its start.
type kubelets struct {
	guard     *guard
	instances *instances
	machines  *machines
	client    kubernetes.Interface
	log       *zap.Logger
	slots     chan struct{}   // limits concurrent requests
	busy      map[string]bool // instances being worked on; under the guard
}

const (
	kubeletRequests = 64
	kubeletRetry    = time.Second
)

// run works until the context ends, and returns when no request is in flight any more.
func (k *kubelets) run(ctx context.Context) {
	defer func() {
		for range cap(k.slots) {
			k.slots <- struct{}{}
		}
	}()
	for {
		work, next := k.due()
		for _, job := range work {
			select {
			case k.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			go func() {
				defer func() { <-k.slots }()
				k.do(ctx, job)
			}()
		}
		var timer <-chan time.Time
		if !next.IsZero() {
			timer = time.After(max(time.Millisecond, next.Sub(k.guard.now())))
		}
		select {
		case <-k.instances.changed:
		case <-timer:
		case <-ctx.Done():
			return
		}
	}
}

// job is one step of one kubelet.
type job struct {
	machine machine
	stop    bool // the instance ended; else it has booted
}

// due returns the jobs to do now, and when there will be more.
func (k *kubelets) due() (work []job, next time.Time) {
	err := k.guard.change(func(now time.Time) error {
		next = k.instances.nextDue
		for id, i := range k.instances.rows {
			boot := i.Node == nodeAbsent && !i.off() && !i.BootAt.IsZero()
			switch {
			case k.busy[id]:
			case boot && now.Before(i.BootAt):
				if next.IsZero() || i.BootAt.Before(next) {
					next = i.BootAt
				}
			case boot, i.off() && i.Node == nodeJoined:
				k.busy[id] = true
				work = append(work, job{machine: k.machines.of(i), stop: i.off()})
			}
		}
		return nil
	})
	if err != nil {
		k.log.Error("keep state", zap.Error(err))
	}
	return work, next
}

// do runs a job and records its outcome. A failed job is retried after kubeletRetry.
func (k *kubelets) do(ctx context.Context, j job) {
	phase, reason := nodeJoined, ""
	var err error
	if j.stop {
		phase = nodeStopped
		err = k.silence(ctx, j.machine)
	} else {
		node, refusal := j.machine.node()
		if refusal != nil {
			phase, reason = nodeFailed, refusal.Error()
		} else {
			node, err = k.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			switch {
			case apierrors.IsAlreadyExists(err):
				err = k.adopt(ctx, j.machine.hostname, "aws:///"+j.machine.instance.Zone+"/"+j.machine.instance.ID)
			case err == nil && k.ended(j.machine.instance.ID):
				// The instance ended before its kubelet registered.
				phase = nodeStopped
				err = k.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
			}
		}
	}
	id := j.machine.instance.ID
	log := k.log.With(zap.String("instance", id), zap.String("node", j.machine.hostname))
	if err != nil && ctx.Err() == nil {
		log.Warn("a kubelet's step failed", zap.Bool("stop", j.stop), zap.Error(err))
		select {
		case <-time.After(kubeletRetry):
		case <-ctx.Done():
		}
	}
	if err == nil && reason != "" {
		log.Warn("kubelet did not come up", zap.String("reason", reason))
	}
	keep := k.guard.change(func(time.Time) error {
		delete(k.busy, id)
		if i := k.instances.rows[id]; err == nil && i != nil {
			i.Node, i.NodeReason = phase, reason
			k.instances.put(id, i)
		}
		return nil
	})
	if keep != nil {
		log.Error("keep state", zap.Error(keep))
	}
	k.instances.wake()
}

// ended reports whether an instance has ended or was stopped.
func (k *kubelets) ended(id string) bool {
	k.guard.mu.Lock()
	defer k.guard.mu.Unlock()
	i := k.instances.rows[id]
	return i == nil || i.off()
}

// adopt accepts an existing Node if it is this instance's own, created by a request whose answer was lost.
func (k *kubelets) adopt(ctx context.Context, name, providerID string) error {
	node, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at existing node: %w", err)
	}
	if node.Spec.ProviderID != providerID {
		return fmt.Errorf("node %s belongs to %s still", name, node.Spec.ProviderID)
	}
	return nil
}

// silence removes SimulatedLabel from the Node of an instance that has ended or was stopped.
func (k *kubelets) silence(ctx context.Context, m machine) error {
	nodes := k.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, m.hostname, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at node: %w", err)
	}
	if node.Spec.ProviderID != "aws:///"+m.instance.Zone+"/"+m.instance.ID {
		return nil // another instance has the name now
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID, "labels": map[string]any{SimulatedLabel: nil}},
	})
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	_, err = nodes.Patch(ctx, m.hostname, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("silence node: %w", err)
	}
	return nil
}
