package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

// disks are the API objects that the judge below reads.
type disks struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
}

func (d *disks) objects() []metav1.Object {
	var objects []metav1.Object
	for _, claim := range d.claims {
		objects = append(objects, claim)
	}
	for _, volume := range d.volumes {
		objects = append(objects, volume)
	}
	for _, class := range d.classes {
		objects = append(objects, class)
	}
	return objects
}

func (d *disks) volume(name string) *corev1.PersistentVolume {
	i := slices.IndexFunc(d.volumes, func(v *corev1.PersistentVolume) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return d.volumes[i]
}

// reach reports whether the kube-scheduler would let a pod use a claim on a node, as its plugins VolumeBinding and
// VolumeZone do, written with the library they use. It records free volumes that are taken for the claim.
func (d *disks) reach(claimName string, node *corev1.Node, taken map[string]*corev1.PersistentVolume) bool {
	claim := d.claims[claimName]
	if claim == nil || claim.DeletionTimestamp != nil || claim.Status.Phase == corev1.ClaimLost {
		return false
	}
	if claim.Spec.VolumeName != "" {
		volume := d.volume(claim.Spec.VolumeName)
		return volume != nil && volume.DeletionTimestamp == nil && volumehelpers.CheckNodeAffinity(volume, node.Labels) == nil && inLabelledZone(volume, node)
	}
	class := d.classes[volumehelpers.GetPersistentVolumeClaimClass(claim)]
	if class == nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode == storagev1.VolumeBindingImmediate {
		return false
	}
	if selected, ok := claim.Annotations["volume.kubernetes.io/selected-node"]; ok && selected != node.Name {
		return false
	} else if !ok {
		volume, err := volumehelpers.FindMatchingVolume(claim, d.volumes, node, taken, true, true)
		if err == nil && volume != nil {
			taken[volume.Name] = volume
			return true
		}
	}
	if class.Provisioner == "kubernetes.io/no-provisioner" {
		return false
	}
	return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(term corev1.TopologySelectorTerm) bool {
		return len(term.MatchLabelExpressions) > 0 && !slices.ContainsFunc(term.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			value, ok := node.Labels[e.Key]
			return !ok || !slices.Contains(e.Values, value)
		})
	})
}

func inLabelledZone(volume *corev1.PersistentVolume, node *corev1.Node) bool {
	zones, ok := volume.Labels[corev1.LabelTopologyZone]
	return !ok || slices.Contains(strings.Split(zones, "__"), node.Labels[corev1.LabelTopologyZone])
}

func drawCondition(t *rapid.T) corev1.NodeSelectorRequirement {
	key := rapid.SampledFrom([]string{ebsZone, corev1.LabelTopologyZone, corev1.LabelHostname, "rack", "generation"}).Draw(t, "key")
	values := map[string][]string{
		"rack": {"r1", "r2"}, "generation": {"1", "2", "3"}, corev1.LabelHostname: {"n", "m"},
		ebsZone: threeZones, corev1.LabelTopologyZone: threeZones}[key]
	operator := rapid.SampledFrom([]corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpIn,
		corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist}).Draw(t, "operator")
	if key == "generation" && rapid.Bool().Draw(t, "compares") {
		return corev1.NodeSelectorRequirement{Key: key, Operator: rapid.SampledFrom([]corev1.NodeSelectorOperator{corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt}).Draw(t, "operator"), Values: []string{"2"}}
	}
	if operator == corev1.NodeSelectorOpExists || operator == corev1.NodeSelectorOpDoesNotExist {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator}
	}
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 2, rapid.ID[string]).Draw(t, "values")}
}

func drawVolume(t *rapid.T, i int) *corev1.PersistentVolume {
	volume := volumeOf(fmt.Sprint("p", i))
	for range rapid.IntRange(0, 3).Draw(t, "terms") {
		reached(rapid.SliceOfN(rapid.Custom(drawCondition), 1, 3).Draw(t, "conditions")...)(volume)
	}
	volume.Spec.StorageClassName = rapid.SampledFrom([]string{"fast", "manual", "at-once"}).Draw(t, "class")
	volume.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(rapid.SampledFrom([]string{"5Gi", "10Gi", "20Gi"}).Draw(t, "size"))
	if rapid.IntRange(0, 7).Draw(t, "released") == 0 {
		volume.Status.Phase = corev1.VolumeReleased
	}
	if rapid.IntRange(0, 7).Draw(t, "volume deleted") == 0 {
		at := metav1.NewTime(now)
		volume.DeletionTimestamp = &at
	}
	return volume
}

func drawClaim(t *rapid.T, i int, d *disks) *corev1.PersistentVolumeClaim {
	claim := claimOf(fmt.Sprint("c", i), ofClass(rapid.SampledFrom([]string{"fast", "fast", "fast", "manual", "at-once", "none", ""}).Draw(t, "class")))
	switch rapid.SampledFrom([]string{"", "", "", "", "", "", "lost", "deleted", "selected"}).Draw(t, "state") {
	case "lost":
		claim.Status.Phase = corev1.ClaimLost
	case "deleted":
		at := metav1.NewTime(now)
		claim.DeletionTimestamp = &at
	case "selected":
		selectedNode(rapid.SampledFrom([]string{"n", "m"}).Draw(t, "selected"))(claim)
	}
	if i < len(d.volumes) && rapid.Bool().Draw(t, "has a volume") {
		volume := d.volumes[i]
		claimed(claim.Name)(volume)
		if rapid.IntRange(0, 3).Draw(t, "bound") > 0 {
			boundTo(volume.Name)(claim)
			if rapid.IntRange(0, 2).Draw(t, "labelled") == 0 {
				volume.Labels = map[string]string{corev1.LabelTopologyZone: rapid.SampledFrom([]string{threeZones[0], threeZones[0] + "__" + threeZones[1], threeZones[2]}).Draw(t, "zones")}
			}
			delete(claim.Annotations, "volume.kubernetes.io/selected-node")
		}
	}
	return claim
}

func drawDisks(t *rapid.T) *disks {
	d := &disks{claims: map[string]*corev1.PersistentVolumeClaim{}, classes: map[string]*storagev1.StorageClass{
		"fast": classNamed("fast"), "manual": classNamed("manual", madeBy("kubernetes.io/no-provisioner")), "at-once": classNamed("at-once", bindsAtOnce)}}
	for range rapid.IntRange(0, 2).Draw(t, "allowed topologies") {
		var term corev1.TopologySelectorTerm
		for range rapid.IntRange(0, 2).Draw(t, "expressions") {
			e := drawCondition(t)
			if e.Operator == corev1.NodeSelectorOpIn {
				term.MatchLabelExpressions = append(term.MatchLabelExpressions, corev1.TopologySelectorLabelRequirement{Key: e.Key, Values: e.Values})
			}
		}
		d.classes["fast"].AllowedTopologies = append(d.classes["fast"].AllowedTopologies, term)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "volumes") {
		d.volumes = append(d.volumes, drawVolume(t, i))
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "claims") {
		claim := drawClaim(t, i, d)
		d.claims[claim.Name] = claim
	}
	return d
}

// TestVolumesAgainstTheKubeScheduler checks for random volumes whether a node will do, and compares the result with the
// library that the kube-scheduler decides by.
func TestVolumesAgainstTheKubeScheduler(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDisks(t)
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"c0", "c1", "c2"}), 1, 2, rapid.ID[string]).Draw(t, "mounts")
		zone := rapid.SampledFrom(threeZones).Draw(t, "zone of the node")
		there := existing("n", "m6i.large", func(n *plan.Node) {
			n.Labels[corev1.LabelTopologyZone], n.Labels[ebsZone] = zone, zone
			if rapid.Bool().Draw(t, "racked") {
				n.Labels["rack"] = rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "rack")
				n.Labels["generation"] = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "generation")
			}
		})
		w := world{pods: []*corev1.Pod{newPod("a", "1", "1Gi", mounts(names...))}, nodes: []*plan.Node{there}}
		input := w.input()
		input.Snapshot.Storage = storageOf(w.interner(), d.objects()...)
		p := plan.Pack(input)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: there.Labels}}
		taken := map[string]*corev1.PersistentVolume{}
		want := !slices.ContainsFunc(names, func(name string) bool { return !d.reach(name, node, taken) })
		got := len(p.Placements) == 1
		// Where claims compete for volumes made by hand, each claim is planned for where its own volume is.
		if got != want && (got || len(taken) < 2) {
			t.Fatalf("placed %v, want %v; %v", got, want, reasonsOf(p))
		}
	})
}

// TestAttachLimitsAreKept places random pods, with volumes of their own and shared ones, on nodes with limits, and
// counts as the kube-scheduler does.
func TestAttachLimitsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := world{}
		objects := []metav1.Object{classNamed("fast")}
		var claims []string
		for i := range rapid.IntRange(1, 8).Draw(t, "claims") {
			name := fmt.Sprint("c", i)
			claims = append(claims, name)
			if rapid.Bool().Draw(t, "unbound") {
				objects = append(objects, claimOf(name))
				continue
			}
			objects = append(objects, claimOf(name, boundTo("p"+name)), volumeOf("p"+name, claimed(name)))
		}
		draw := func(name string) *corev1.Pod {
			return newPod(name, "100m", "100Mi", mounts(rapid.SliceOfNDistinct(rapid.SampledFrom(claims), 1, 3, rapid.ID[string]).Draw(t, name)...))
		}
		limits, on := map[string]int{}, map[string][]*corev1.Pod{}
		for _, name := range []string{"n", "m"} {
			limits[name] = rapid.IntRange(0, 4).Draw(t, "limit")
			node := existing(name, "m6i.4xlarge", attaches(limits[name]))
			for i := range rapid.IntRange(0, 2).Draw(t, "there") {
				pod := draw(fmt.Sprint("on-", name, i))
				pod.Spec.NodeName, pod.Status.Conditions = name, nil
				if used(append(on[name], pod)) > limits[name] {
					continue
				}
				on[name] = append(on[name], pod)
				node.Pods = append(node.Pods, w.interner().Pod(pod))
			}
			w.nodes = append(w.nodes, node)
		}
		byUID := map[string]*corev1.Pod{}
		for i := range rapid.IntRange(1, 10).Draw(t, "pods") {
			pod := draw(fmt.Sprint("w", i))
			byUID[string(pod.UID)] = pod
			w.pods = append(w.pods, pod)
		}
		input := w.input()
		input.Snapshot.Storage = storageOf(w.interner(), objects...)
		p := plan.Pack(input)
		for _, placement := range p.Placements {
			node := strings.TrimPrefix(placement.Node, "claim-")
			on[node] = append(on[node], byUID[string(placement.Pod.UID)])
		}
		for node, pods := range on {
			if count := used(pods); count > limits[node] {
				t.Fatalf("node %s attaches %d volumes, its limit is %d", node, count, limits[node])
			}
		}
		for _, unplaced := range p.Unplaced {
			for node, pods := range on {
				if used(append(slices.Clone(pods), byUID[string(unplaced.Pod.UID)])) <= limits[node] {
					t.Fatalf("pod %s has no place, and node %s has room for its volumes", unplaced.Pod.Name, node)
				}
			}
		}
	})
}

// used counts the volumes of pods on one node.
func used(pods []*corev1.Pod) int {
	volumes := map[string]bool{}
	for _, pod := range pods {
		for i := range pod.Spec.Volumes {
			volumes[pod.Spec.Volumes[i].PersistentVolumeClaim.ClaimName] = true
		}
	}
	return len(volumes)
}
