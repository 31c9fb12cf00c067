package day

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// demand is a Deployment and its number of replicas by hour.
type demand struct {
	name        string
	cpu, memory int64 // thousandths of a core, MiB
	// least and most are replicas at night and at the busiest hour.
	least, most int
	busiest     float64 // hour of the day
	// burst is how many replicas a batch adds for an hour, at some hours of the day.
	burst int
	hours [24]bool
	noise *rand.Rand
	pods  []*corev1.Pod
	count int
}

// draw creates Deployments: six of ten follow the day, two are bursts of batch work, two hardly change.
func draw(seed uint64, count int) []*demand {
	d := rand.New(rand.NewPCG(seed, 9))
	between := func(low, high int) int { return low + d.IntN(high-low+1) }
	sizes := [...][2]int64{{100, 256}, {250, 512}, {250, 1024}, {500, 1024}, {500, 3072}, {1000, 2048}, {1000, 7168}, {2000, 4096}, {1500, 12288}, {3500, 7168}}
	all := make([]*demand, count)
	for i := range all {
		size := sizes[d.IntN(len(sizes))]
		one := &demand{name: fmt.Sprintf("app-%02d", i), cpu: size[0], memory: size[1], busiest: 9 + 10*d.Float64(), noise: rand.New(rand.NewPCG(seed, uint64(i)))}
		one.least = between(1, 6)
		switch i % 10 {
		case 0, 1:
			one.most = one.least + between(0, 2)
		case 2, 3:
			one.least, one.most, one.burst = 0, 0, between(6, 24)
			for range 4 {
				one.hours[d.IntN(24)] = true
			}
		default:
			one.most = one.least + between(4, 28)
		}
		all[i] = one
	}
	return all
}

// replicas returns the number of replicas at a time. An autoscaler does not keep it quite constant.
func (d *demand) replicas(at time.Time) int {
	hour := at.Sub(Start).Hours()
	curve := max(0, math.Cos((hour-d.busiest)/24*2*math.Pi))
	want := float64(d.least) + curve*float64(d.most-d.least)
	if d.most > d.least+2 {
		want *= 1 + 0.06*(2*d.noise.Float64()-1)
	}
	count := int(math.Round(want))
	if d.hours[int(hour)%24] {
		count += d.burst
	}
	return count
}

// scale adds and removes pods.
func (w *world) scale() {
	for _, d := range w.demand {
		want := d.replicas(w.now)
		d.come(w, want-len(d.pods))
		if len(d.pods) > want {
			w.retire(d, len(d.pods)-want)
		}
	}
}

// come creates pods, which wait.
func (d *demand) come(w *world, count int) {
	for range count {
		d.count++
		p := d.pod(w.now, w.uid())
		d.pods, w.waiting = append(d.pods, p), append(w.waiting, p)
	}
}

// retire removes pods as a ReplicaSet does: first those that share a node with the most pods of their kind, then the younger
// ones, as far as the logarithmic scale of their ages tells them apart, and then by UID.
func (w *world) retire(d *demand, count int) {
	on := map[string]int{}
	for _, p := range d.pods {
		on[p.Spec.NodeName]++
	}
	age := func(p *corev1.Pod) float64 {
		return math.Floor(math.Log2(max(1, w.now.Sub(p.CreationTimestamp.Time).Seconds())))
	}
	slices.SortFunc(d.pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(on[a.Spec.NodeName], on[b.Spec.NodeName]), -cmp.Compare(age(a), age(b)), cmp.Compare(a.UID, b.UID))
	})
	for _, p := range d.pods[len(d.pods)-count:] {
		m := w.nodes[p.Spec.NodeName]
		m.pods = slices.DeleteFunc(m.pods, func(other *corev1.Pod) bool { return other == p })
		m.cpuLeft += d.cpu
		m.memLeft += d.memory << 20
		m.lastEvent = w.now
	}
	d.pods = d.pods[:len(d.pods)-count]
}

// uid returns a new UID: as arbitrary as a real one, and the same whenever the same day is simulated.
func (w *world) uid() types.UID {
	return types.UID(fmt.Sprintf("%016x", w.uids.Uint64()))
}

// pod creates another replica.
func (d *demand) pod(now time.Time, uid types.UID) *corev1.Pod {
	name, yes, created := fmt.Sprintf("%s-%05d", d.name, d.count), true, metav1.NewTime(now)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: uid, Labels: map[string]string{"app": d.name}, CreationTimestamp: created,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.name, UID: types.UID("set-" + d.name), Controller: &yes}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/app:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewMilliQuantity(d.cpu, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(d.memory<<20, resource.BinarySI),
			}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	}
}
