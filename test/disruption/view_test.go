package disruption_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

// view is a cache of the cluster and a ledger of the life of every NodeClaim. The objects that it lists are shared and must
// not be changed.
type view struct {
	cache.Cache
	mu    sync.Mutex
	lives map[string]*life // by claim
	waits map[string]*wait // by pod UID
}

// life is the ledger's record of a claim and its node.
type life struct {
	claim, scene, pool, node string
	itype, zone, capacity    string
	// choices are the instance types that were left to its launch, replaces is the Replacement that it was made for, and
	// replacedBy the last one to remove its node.
	choices              []string
	replaces, replacedBy string
	// created is the claim's own timestamp; began is when the node was first seen tainted or being deleted, and zero again
	// once that was undone. The watch of claims gives the order in which claims served and left.
	created, began, served, left time.Time
	// beganAt and leftAt are the resource versions at began and left: unlike times, they order what different watches saw.
	beganAt, leftAt uint64
	// initialized says that the node served, going that it or its claim is being deleted, gone that the claim no longer
	// exists.
	initialized, going, gone bool
	// tainted says whether the node had the taint when last seen, undone is how often the taint was removed again.
	tainted bool
	undone  int
	// drift is why the claim is Drifted.
	drift string
	// reason is the last reason given for its removal.
	reason string
}

// wait is how long a pod was without a node.
type wait struct {
	scene, pod     string
	created, bound time.Time
	// boundAt is the resource version at bound.
	boundAt uint64
}

// eventReason is the index of Events by their reason.
const eventReason = "reason"

// watch watches a laboratory until the test ends.
func watch(w *world.World) *view {
	w.T.Helper()
	v := &view{lives: map[string]*life{}, waits: map[string]*wait{}}
	v.Cache = w.Observe(map[client.Object]func(any, bool){
		&corev1.Pod{}: v.notePod, &corev1.Node{}: v.noteNode, &karpv1.NodeClaim{}: v.noteClaim, &karpv1.NodePool{}: nil, &corev1.Event{}: nil,
	})
	// There are thousands of Events, and scenarios look for theirs ten times a second.
	if err := v.IndexField(w.Context(), &corev1.Event{}, eventReason, func(object client.Object) []string {
		return []string{object.(*corev1.Event).Reason}
	}); err != nil {
		w.T.Fatal(err)
	}
	return v
}

func (v *view) notePod(object any, _ bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := string(pod.UID)
	if v.waits[key] == nil {
		v.waits[key] = &wait{scene: pod.Namespace, pod: pod.Name, created: time.Now()}
	}
	if v.waits[key].bound.IsZero() && pod.Spec.NodeName != "" {
		v.waits[key].bound, v.waits[key].boundAt = time.Now(), revision(pod)
	}
}

func (v *view) noteClaim(object any, deleted bool) {
	claim, ok := object.(*karpv1.NodeClaim)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.lives[claim.Name]
	if l == nil {
		l = &life{claim: claim.Name, scene: claim.Labels[sceneLabel], pool: claim.Labels[poolKey], created: claim.CreationTimestamp.Time}
		for _, r := range claim.Spec.Requirements {
			if r.Key == typeKey {
				l.choices = r.Values
			}
		}
		v.lives[claim.Name] = l
	}
	l.node, l.replaces = claim.Status.NodeName, claim.Annotations[karpv1.ReplacementAnnotationKey]
	l.itype, l.zone, l.capacity = claim.Labels[typeKey], claim.Labels[zoneKey], claim.Labels[capacityKey]
	if claim.IsTrue(karpv1.ConditionTypeInitialized) && !l.initialized {
		l.initialized, l.served = true, time.Now()
	}
	if c := claim.Condition(karpv1.ConditionTypeDrifted); c != nil && c.Status == metav1.ConditionTrue {
		l.drift = c.Reason
	}
	l.because(claim.Annotations[karpv1.RemovalReasonAnnotationKey])
	l.gone = l.gone || deleted
	if deleted || !claim.DeletionTimestamp.IsZero() {
		l.goes(claim)
		if l.left.IsZero() {
			l.left, l.leftAt = time.Now(), revision(claim)
		}
	}
}

func (v *view) noteNode(object any, deleted bool) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	l := v.ofNode(node)
	if l == nil {
		return // no known NodeClaim owns it yet; it will be seen again
	}
	l.because(node.Annotations[karpv1.RemovalReasonAnnotationKey])
	if by := node.Annotations[karpv1.ReplacementAnnotationKey]; by != "" && by != l.replaces {
		l.replacedBy = by
	}
	tainted := disruptedTaint(node)
	switch {
	case deleted || !node.DeletionTimestamp.IsZero():
		l.goes(node)
	case tainted && l.began.IsZero():
		l.began, l.beganAt = time.Now(), revision(node)
	case !tainted && l.tainted && !l.going:
		l.undone++
		l.began, l.beganAt = time.Time{}, 0
	}
	l.tainted = tainted
}

func (v *view) ofNode(node *corev1.Node) *life {
	for _, owner := range node.OwnerReferences {
		if owner.Kind == "NodeClaim" {
			return v.lives[owner.Name]
		}
	}
	return nil
}

func (l *life) because(reason string) {
	if reason != "" {
		l.reason = reason
	}
}

// goes records that the claim or its node is being deleted, as the object shows.
func (l *life) goes(object client.Object) {
	l.going = true
	if l.began.IsZero() {
		l.began, l.beganAt = time.Now(), revision(object)
	}
}

// revision returns the resource version of an object; zero if it is not known.
func revision(object client.Object) uint64 {
	at, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return at
}

func disruptedTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == karpv1.DisruptedTaintKey })
}

// of returns the current lives of a scenario, the oldest first.
func (v *view) of(scene string) []life {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []life
	for _, l := range v.lives {
		if l.scene == scene {
			all = append(all, *l)
		}
	}
	slices.SortFunc(all, func(a, b life) int {
		if c := a.created.Compare(b.created); c != 0 {
			return c
		}
		return strings.Compare(a.claim, b.claim)
	})
	return all
}

// waited returns the pods of a scenario with how long each was without a node.
func (v *view) waited(scene string) []wait {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []wait
	for _, w := range v.waits {
		if w.scene == scene {
			all = append(all, *w)
		}
	}
	return all
}
