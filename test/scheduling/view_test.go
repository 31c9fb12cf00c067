package scheduling_test

import (
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

// view is a cache of the cluster and a ledger of every NodeClaim there ever was. The objects it returns are shared and must
// not be changed.
type view struct {
	cache.Cache
	mu     sync.Mutex
	ledger map[string]*entry // by claim
	// expected is the last node to which each pod was nominated, by namespace/name.
	expected map[string]string
}

// entry is the ledger's record of a claim.
type entry struct {
	scene, pool, plan string
	gone              bool
}

// watch watches a laboratory until the test ends.
func watch(w *world.World) *view {
	w.T.Helper()
	v := &view{ledger: map[string]*entry{}, expected: map[string]string{}}
	v.Cache = w.Observe(map[client.Object]func(any, bool){
		&corev1.Pod{}: v.note, &karpv1.NodeClaim{}: v.record, &corev1.Node{}: nil, &corev1.Event{}: nil, &karpv1.NodePool{}: nil,
	})
	return v
}

// note records where a pod is nominated. The kube-scheduler removes the nomination once the pod is bound.
func (v *view) note(object any, _ bool) {
	if pod, ok := object.(*corev1.Pod); ok && pod.Status.NominatedNodeName != "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.expected[pod.Namespace+"/"+pod.Name] = pod.Status.NominatedNodeName
	}
}

func (v *view) record(object any, gone bool) {
	claim, ok := object.(*karpv1.NodeClaim)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	group := claim.Annotations[karpv1.LaunchGroupAnnotationKey]
	v.ledger[claim.Name] = &entry{
		scene: claim.Labels[sceneLabel], pool: claim.Labels[karpv1.NodePoolLabelKey], gone: gone || !claim.DeletionTimestamp.IsZero(),
		// A launch group is named after its plan and a number.
		plan: group[:max(0, strings.LastIndexByte(group, '-'))],
	}
}

// plans returns the plans that have launched nodes for a scenario, with the number of nodes.
func (v *view) plans(scene string) map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	plans := map[string]int{}
	for _, e := range v.ledger {
		if e.scene == scene {
			plans[e.plan]++
		}
	}
	return plans
}

// nominations returns where the pods of a namespace were nominated, by pod.
func (v *view) nominations(namespace string) map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	nodes := map[string]string{}
	for key, node := range v.expected {
		if pod, ok := strings.CutPrefix(key, namespace+"/"); ok {
			nodes[pod] = node
		}
	}
	return nodes
}

// claims returns the names of a scenario's existing claims, and separately of those being deleted or gone.
func (v *view) claims(scene string) (there, gone []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(v.ledger)) {
		switch e := v.ledger[name]; {
		case e.scene != scene:
		case e.gone:
			gone = append(gone, name)
		default:
			there = append(there, name)
		}
	}
	return there, gone
}
