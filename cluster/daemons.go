package cluster

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// A DaemonSet takes from a node what its pods request. That can differ from its template: LimitRanges, the RuntimeClass
// and webhooks change pods as they are created. So the newest living pod represents its DaemonSet; where there is none,
// the template with the LimitRanges of its namespace does.

// daemonSet is a DaemonSet as planning sees it.
type daemonSet struct {
	// DaemonSet is reduced from the template alone.
	*plan.DaemonSet
	template *appsv1.DaemonSet
	// ranged is reduced with ranges applied; shown is ranged with the requests of the newest pod, whose class is seen.
	// Both are kept while they are valid, since planning recognizes an unchanged DaemonSet by its identity.
	ranges        []*corev1.LimitRange
	ranged, shown *plan.DaemonSet
	seen          *plan.Class
}

func (d *daemonSet) key() string { return d.Namespace + "/" + d.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (d *daemonSet) GetObjectMeta() metav1.Object { return named(d.Namespace, d.Name) }

func reduceDaemonSet(interner *plan.Interner, obj any) (*daemonSet, error) {
	set, ok := obj.(*appsv1.DaemonSet)
	if !ok {
		return nil, unexpected(set, obj)
	}
	template := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, UID: set.UID}}
	template.Spec.Template = set.Spec.Template
	return &daemonSet{DaemonSet: interner.DaemonSet(set), template: template}, nil
}

// daemonSets are the DaemonSets, each with the newest of its pods.
type daemonSets struct {
	*shared
	pods *feed[*Pod]
	feed *feed[*daemonSet]
	// limitRanges are the defaults of containers that do not set resources; ranges are the same by namespace, nil when
	// one has changed.
	limitRanges *feed[*corev1.LimitRange]
	ranges      map[string][]*corev1.LimitRange
	// newest is the newest pod of each DaemonSet, by the set's key.
	newest map[string]*Pod
	// lost are the DaemonSets whose newest pod is gone, so that the next newest has to be found.
	lost map[string]bool
}

func newDaemonSets(w *watches, pods *feed[*Pod]) *daemonSets {
	d := &daemonSets{shared: w.shared, pods: pods, newest: map[string]*Pod{}, lost: map[string]bool{}}
	d.feed = open(w, appsv1.SchemeGroupVersion, "daemonsets", &appsv1.DaemonSet{}, nil, reduceDaemonSet, (*daemonSet).key, d.daemonSetChanged)
	d.limitRanges = open(w, corev1.SchemeGroupVersion, "limitranges", &corev1.LimitRange{}, nil, whole[*corev1.LimitRange], nameOf[*corev1.LimitRange], d.limitRangeChanged)
	return d
}

func (d *daemonSets) daemonSetChanged(old, now *daemonSet, existed, exists bool) {
	if existed && exists && *old.DaemonSet == *now.DaemonSet {
		d.feed.items[now.key()] = old // only its status has changed
		return
	}
	d.changed()
	d.publish(Event{Kind: DaemonSetsChanged})
}

func (d *daemonSets) limitRangeChanged(_, _ *corev1.LimitRange, _, _ bool) {
	d.ranges = nil
	d.changed()
	d.publish(Event{Kind: DaemonSetsChanged})
}

// daemonOf is the key of the DaemonSet that a pod represents; empty where it represents none.
func daemonOf(pod *Pod) string {
	if pod == nil || !pod.Daemon || pod.Terminal || pod.Terminating() {
		return ""
	}
	return pod.Namespace + "/" + pod.OwnerName
}

// podChanged follows the pods of DaemonSets. Either version may be nil. The lock is held.
func (d *daemonSets) podChanged(old, now *Pod) {
	set := daemonOf(now)
	if before := daemonOf(old); before != "" && d.newest[before] != nil && d.newest[before].UID == old.UID && (before != set || old.UID != now.UID) {
		delete(d.newest, before)
		d.lost[before] = true
		d.changed()
	}
	if set == "" || !newer(now, d.newest[set]) {
		return
	}
	last := d.newest[set]
	d.newest[set] = now
	if last == nil || last.Class != now.Class {
		d.changed()
		d.publish(Event{Kind: DaemonSetsChanged})
	}
}

// newer says that a pod was created after another, or is a later version of it.
func newer(pod, than *Pod) bool {
	if than == nil || pod.UID == than.UID || pod.Created.After(than.Created) {
		return true
	}
	return pod.Created.Equal(than.Created) && pod.UID > than.UID
}

// findLost finds the newest pod of the DaemonSets that have lost theirs. The lock is held.
func (d *daemonSets) findLost() {
	if len(d.lost) == 0 {
		return
	}
	for _, pod := range d.pods.items {
		if set := daemonOf(pod); d.lost[set] && newer(pod, d.newest[set]) {
			d.newest[set] = pod
		}
	}
	clear(d.lost)
}

// list returns the DaemonSets as they are known now. The lock is held.
func (d *daemonSets) list() []*plan.DaemonSet {
	d.findLost()
	list := make([]*plan.DaemonSet, 0, len(d.feed.items))
	for _, set := range sorted(d.feed.items) {
		list = append(list, d.shown(set))
	}
	return list
}

// shown returns a DaemonSet as snapshots show it. The lock is held.
func (d *daemonSets) shown(set *daemonSet) *plan.DaemonSet {
	if ranges := d.rangesOf(set.Namespace); set.ranged == nil || !slices.Equal(set.ranges, ranges) {
		set.ranges, set.ranged, set.shown = ranges, set.DaemonSet, nil
		if len(ranges) > 0 {
			set.ranged = d.interner.DaemonSet(set.template, ranges...)
		}
	}
	var seen *plan.Class
	if pod := d.newest[set.key()]; pod != nil {
		seen = pod.Class
	}
	if set.shown == nil || set.seen != seen {
		set.seen, set.shown = seen, set.ranged
		if seen != nil {
			set.shown = d.interner.DaemonSetOf(set.ranged, seen)
		}
	}
	return set.shown
}

// rangesOf returns the LimitRanges of a namespace, ordered by name. The lock is held.
func (d *daemonSets) rangesOf(namespace string) []*corev1.LimitRange {
	if d.ranges == nil {
		d.ranges = map[string][]*corev1.LimitRange{}
		for _, limits := range sorted(d.limitRanges.items) {
			d.ranges[limits.Namespace] = append(d.ranges[limits.Namespace], limits)
		}
	}
	return d.ranges[namespace]
}
