package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// podsOfNode is the pod capacity of a Node that states none.
const podsOfNode = 110

// Cluster is the cluster that manifests describe.
type Cluster struct {
	Snapshot *plan.Snapshot
	Pools
	// Region and Zones are where the cluster is; empty if the manifests do not say.
	Region string
	Zones  []string
	// Notes say what was assumed.
	Notes []string
}

// builder gathers a Cluster.
type builder struct {
	objects  []object
	interner *plan.Interner
	admission
	snapshot *plan.Snapshot
	bound    map[string][]*plan.Pod // by Node
	notes    []string
	wrong    mistakes
}

// Cluster turns the manifests into input for the planner, at a given time. The error joins all mistakes, each with its place
// and what to do about it.
func (m *Manifests) Cluster(now time.Time) (*Cluster, error) {
	b := &builder{
		objects: m.objects, interner: new(plan.Interner), admission: *newAdmission(m.objects), bound: map[string][]*plan.Pod{},
		snapshot: &plan.Snapshot{Time: now, Namespaces: map[string]map[string]string{}, LabelKeys: nodeclass.Labels()},
	}
	b.storage()
	b.workloads()
	b.pods()
	b.daemonSets()
	b.nodes()
	b.namespaces()
	b.buffers()
	pools, notes, wrong := poolsOf(m.objects)
	b.wrong = append(b.wrong, wrong...)
	if len(b.wrong) > 0 {
		return nil, b.wrong
	}
	b.snapshot.NodePools = pools.NodePools
	slices.SortFunc(b.snapshot.Pending, func(x, y *plan.Pod) int { return cmp.Compare(x.UID, y.UID) })
	c := &Cluster{Snapshot: b.snapshot, Pools: pools, Notes: slices.Concat(notes, b.notes, b.admission.notes())}
	c.Region, c.Zones = c.zones()
	return c, nil
}

// workloads creates the pods that workloads lack.
func (b *builder) workloads() {
	all, notes, wrong := workloads(b.objects)
	b.notes, b.wrong = append(b.notes, notes...), append(b.wrong, wrong...)
	family := newFamily(b.objects)
	parents := family.parents()
	exists := map[string]bool{}
	for _, pod := range only[*corev1.Pod](b.objects) {
		exists[pod.place.key()] = true
	}
	for _, w := range all {
		wrong := check(w.place, w.path, &w.template.Spec)
		b.wrong = append(b.wrong, wrong...)
		missing := family.missing(w, parents)
		if len(wrong) > 0 || missing == 0 {
			continue
		}
		numbers := make([]int, 0, missing)
		for number := w.first; len(numbers) < missing; number++ {
			if len(exists) == 0 || !exists[w.place.namespace+"/"+w.name(number)] {
				numbers = append(numbers, number)
			}
		}
		b.make(w, numbers)
	}
}

// make adds the pods of a workload with these numbers.
func (b *builder) make(w *workload, numbers []int) {
	model := w.model(&b.admission)
	var reduced *plan.Pod
	if w.alike() {
		reduced = b.interner.Pod(model)
	}
	names := make([]string, len(numbers))
	pods := make([]plan.Pod, len(numbers))
	for n, number := range numbers {
		name := w.name(number)
		names[n] = name
		pod := &pods[n]
		if reduced != nil {
			*pod = *reduced
		} else {
			full := model.DeepCopy()
			full.Name = name
			if w.each != nil {
				w.each(full, number)
			}
			*pod = *b.interner.Pod(full)
		}
		pod.Name, pod.UID = name, w.uid(number)
		b.snapshot.Pending = append(b.snapshot.Pending, pod)
	}
	for i := range b.objects {
		if set, ok := b.objects[i].value.(*appsv1.StatefulSet); ok && b.objects[i].place == w.place {
			for _, claim := range claimsOf(set, w.place.namespace, names) {
				b.volumeClaim(claim)
			}
		}
	}
}

// pods adds the pods among the manifests: to their Node if that is among them too, otherwise to the pending pods.
func (b *builder) pods() {
	there := map[string]bool{}
	for _, node := range only[*corev1.Node](b.objects) {
		there[node.place.name] = true
	}
	elsewhere := 0
	for _, o := range only[*corev1.Pod](b.objects) {
		pod := o.value
		if wrong := check(o.place, "spec", &pod.Spec); len(wrong) > 0 {
			b.wrong = append(b.wrong, wrong...)
			continue
		}
		if phase := pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		if pod.UID == "" {
			pod.UID = types.UID("Pod/" + o.place.key())
		}
		b.admit(pod)
		bound := pod.Spec.NodeName != "" && there[pod.Spec.NodeName]
		if !bound {
			if pod.Spec.NodeName != "" {
				elsewhere++
			}
			pending(pod)
		}
		reduced := b.interner.Pod(pod)
		if bound {
			b.bound[reduced.Node] = append(b.bound[reduced.Node], reduced)
		} else {
			b.snapshot.Pending = append(b.snapshot.Pending, reduced)
		}
	}
	if elsewhere > 0 {
		b.notes = append(b.notes, fmt.Sprintf("%d pods run on Nodes that are not among the manifests: they are planned as if they were pending", elsewhere))
	}
}

func (b *builder) daemonSets() {
	newest := b.daemons()
	for _, o := range only[*appsv1.DaemonSet](b.objects) {
		set := o.value
		wrong := check(o.place, "spec.template.spec", &set.Spec.Template.Spec)
		if problem := selects(set.Spec.Selector, set.Spec.Template.Labels); problem != "" {
			wrong = append(wrong, &mistake{place: o.place, field: "spec.selector", problem: problem})
		}
		if len(wrong) > 0 {
			b.wrong = append(b.wrong, wrong...)
			continue
		}
		// A DaemonSet's pods go through the same admission as any other pod.
		pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
		pod.Namespace = o.place.namespace
		b.admit(pod)
		set.Spec.Template.Spec = pod.Spec
		if set.UID == "" {
			set.UID = types.UID("DaemonSet/" + o.place.key())
		}
		reduced := b.interner.DaemonSet(set)
		if pod := newest[o.place.namespace+"/"+o.place.name]; pod != nil {
			reduced = b.interner.DaemonSetOf(reduced, pod.Class)
		}
		b.snapshot.DaemonSets = append(b.snapshot.DaemonSets, reduced)
	}
}

// daemons returns the newest running pod of each DaemonSet, by the set's namespace and name.
func (b *builder) daemons() map[string]*plan.Pod {
	newest := map[string]*plan.Pod{}
	for _, pods := range b.bound {
		for _, pod := range pods {
			key := pod.Namespace + "/" + pod.OwnerName
			if last := newest[key]; pod.Daemon && !pod.Terminating() && (last == nil || cmp.Or(pod.Created.Compare(last.Created), cmp.Compare(pod.UID, last.UID)) > 0) {
				newest[key] = pod
			}
		}
	}
	return newest
}

func (b *builder) namespaces() {
	for _, o := range only[*corev1.Namespace](b.objects) {
		b.snapshot.Namespaces[o.place.name] = withName(o.value.Labels, o.place.name)
	}
	for i := range b.objects {
		if name := b.objects[i].place.namespace; name != "" && b.snapshot.Namespaces[name] == nil {
			b.snapshot.Namespaces[name] = withName(nil, name)
		}
	}
}

// withName adds the label that every namespace has.
func withName(labels map[string]string, name string) map[string]string {
	all := map[string]string{corev1.LabelMetadataName: name}
	for key, value := range labels {
		all[key] = value
	}
	return all
}

// storage adds volumes, their claims and classes.
func (b *builder) storage() {
	storage := &b.snapshot.Storage
	storage.Claims, storage.Volumes, storage.Classes = map[string]*plan.VolumeClaim{}, map[string]*plan.Volume{}, map[string]*plan.StorageClass{}
	for _, o := range only[*corev1.PersistentVolumeClaim](b.objects) {
		b.volumeClaim(o.value)
	}
	for _, o := range only[*corev1.PersistentVolume](b.objects) {
		if o.value.Status.Phase == "" && o.value.Spec.ClaimRef == nil {
			o.value.Status.Phase = corev1.VolumeAvailable
		}
		storage.Volumes[o.place.name] = b.interner.Volume(o.value)
	}
	for _, o := range only[*storagev1.StorageClass](b.objects) {
		storage.Classes[o.place.name] = b.interner.StorageClass(o.value)
	}
}

// volumeClaim adds a claim, unless it is there already.
func (b *builder) volumeClaim(claim *corev1.PersistentVolumeClaim) {
	if claim.UID == "" {
		claim.UID = types.UID("PersistentVolumeClaim/" + claim.Namespace + "/" + claim.Name)
	}
	reduced := b.interner.VolumeClaim(claim)
	if b.snapshot.Storage.Claims[reduced.Key()] == nil {
		b.snapshot.Storage.Claims[reduced.Key()] = reduced
	}
}

// completeNode fills in what a Node written by hand leaves out, or returns what it must state.
func completeNode(at place, node *corev1.Node) *mistake {
	if len(node.Status.Allocatable) == 0 {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
	if len(node.Status.Allocatable) == 0 {
		return &mistake{place: at, field: "status.allocatable", problem: `is missing: say what the node has for pods, such as {cpu: "4", memory: 15Gi, pods: "58"}`}
	}
	if _, ok := node.Status.Allocatable[corev1.ResourcePods]; !ok {
		node.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(podsOfNode, resource.DecimalSI)
	}
	if len(node.Status.Capacity) == 0 {
		node.Status.Capacity = node.Status.Allocatable.DeepCopy()
	}
	if len(node.Status.Conditions) == 0 {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Labels[corev1.LabelHostname] == "" {
		node.Labels[corev1.LabelHostname] = node.Name
	}
	if node.UID == "" {
		node.UID = types.UID("Node/" + node.Name)
	}
	return nil
}

func byUID(a, b *plan.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) }
