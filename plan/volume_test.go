package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// A new node is launched in the zone where all volumes of its pod are, or can be made.
func TestVolumesDecideTheZone(t *testing.T) {
	t.Parallel()
	a, b, c := threeZones[0], threeZones[1], threeZones[2]
	anywhere := threeZones
	tests := []struct {
		name, reason string
		pod          func(*corev1.Pod)
		objects      []metav1.Object
		zones        []string
	}{
		{name: "none", reason: "volumes that live and die with the pod ask for nothing", pod: func(pod *corev1.Pod) {
			pod.Spec.Volumes = []corev1.Volume{
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var"}}},
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			}
		}, zones: anywhere},
		{name: "bound", reason: "the node affinity of a bound volume counts", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(corev1.LabelTopologyZone, b))}, zones: []string{b}},
		{name: "driver's key", reason: "the EBS driver's own label for the zone is the zone", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(ebsZone, b))}, zones: []string{b}},
		{name: "old key", reason: "so is the one Kubernetes had before", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(corev1.LabelFailureDomainBetaZone, b))}, zones: []string{b}},
		{name: "labels of the volume", reason: "a volume without node affinity is where its labels say", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), func(volume *corev1.PersistentVolume) {
				volume.Labels = map[string]string{corev1.LabelTopologyZone: a + "__" + c}
			})}, zones: []string{a, c}},
		{name: "reached from everywhere", reason: "a volume without node affinity, such as a network file system, asks for nothing", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"))}, zones: anywhere},
		{name: "alternatives", reason: "each term of a volume's node affinity will do", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(corev1.LabelTopologyZone, a), reachedBy(ebsZone, c))}, zones: []string{a, c}},
		{name: "excluded", reason: "any operator is understood", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reached(
				corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{a}}))}, zones: []string{b, c}},
		{name: "two volumes", reason: "a node has to reach both", pod: mounts("x", "y"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(ebsZone, a, b)),
				claimOf("y", boundTo("py")), volumeOf("py", claimed("y"), reachedBy(corev1.LabelTopologyZone, b, c))}, zones: []string{b}},
		{name: "made anywhere", reason: "an unbound claim of a class without topologies gets its volume where the pod is", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast")}, zones: anywhere},
		{name: "made in some zones", reason: "allowedTopologies count while the volume is not there", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", allowedIn(ebsZone, a), allowedIn(corev1.LabelTopologyZone, b))}, zones: []string{a, b}},
		{name: "made beside another", reason: "what is bound and what will be made have to meet", pod: mounts("x", "y"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", allowedIn(ebsZone, a, b)),
				claimOf("y", boundTo("py")), volumeOf("py", claimed("y"), reachedBy(ebsZone, b, c))}, zones: []string{b}},
		{name: "bound outside", reason: "allowedTopologies do not count once the volume is there", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), classNamed("fast", allowedIn(ebsZone, a)), volumeOf("px", claimed("x"), reachedBy(ebsZone, c))}, zones: []string{c}},
		{name: "free volume", reason: "a volume that is there already is taken where it is, too", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", allowedIn(ebsZone, a)), volumeOf("px", reachedBy(ebsZone, c))}, zones: []string{a, c}},
		{name: "made by hand", reason: "a class that makes nothing leaves only the volumes that are there and match", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", madeBy("kubernetes.io/no-provisioner")), volumeOf("p1", reachedBy(ebsZone, c)),
				volumeOf("p2", reachedBy(ebsZone, a), claimed("other")),
				volumeOf("p3", reachedBy(ebsZone, a), func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "slow" }),
				volumeOf("p4", reachedBy(ebsZone, a), func(v *corev1.PersistentVolume) {
					v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("9Gi")
				}),
				volumeOf("p5", reachedBy(ebsZone, a), func(v *corev1.PersistentVolume) {
					v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
				}),
				volumeOf("p6", reachedBy(ebsZone, a), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }),
				volumeOf("p7", reachedBy(ebsZone, a), func(v *corev1.PersistentVolume) {
					block := corev1.PersistentVolumeBlock
					v.Spec.VolumeMode = &block
				})}, zones: []string{c}},
		{name: "selected by label", reason: "a claim's selector decides which volumes match", pod: mounts("x"),
			objects: []metav1.Object{classNamed("fast", madeBy("kubernetes.io/no-provisioner")),
				claimOf("x", func(claim *corev1.PersistentVolumeClaim) {
					claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "b"}}
				}),
				volumeOf("pa", reachedBy(ebsZone, a)),
				volumeOf("pb", reachedBy(ebsZone, b), func(v *corev1.PersistentVolume) { v.Labels = map[string]string{"disk": "b"} })}, zones: []string{b}},
		{name: "kept for it", reason: "a volume kept for the claim is its own whatever its class", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", madeBy("kubernetes.io/no-provisioner")),
				volumeOf("px", reachedBy(ebsZone, b), claimed("x"), func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "" })}, zones: []string{b}},
		{name: "default class", reason: "a claim that names no class gets the default one, the youngest of several", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", ofNoClass), classNamed("old", isDefault, allowedIn(ebsZone, a), func(class *storagev1.StorageClass) {
				class.CreationTimestamp = metav1.NewTime(now.Add(-1))
			}), classNamed("new", isDefault, allowedIn(ebsZone, b)), classNamed("other", allowedIn(ebsZone, c))}, zones: []string{b}},
		{name: "class by annotation", reason: "the annotation is older than the field and wins", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", ofClass("none"), func(claim *corev1.PersistentVolumeClaim) {
				claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "fast"}
			}), classNamed("fast", allowedIn(ebsZone, b))}, zones: []string{b}},
		{name: "ephemeral to come", reason: "the claim of an ephemeral volume is planned for before it is there", pod: scratch("data", "fast"),
			objects: []metav1.Object{classNamed("fast", allowedIn(ebsZone, b))}, zones: []string{b}},
		{name: "ephemeral", reason: "and found by its name when it is", pod: scratch("data", "fast"),
			objects: []metav1.Object{classNamed("fast", allowedIn(ebsZone, b)), volumeOf("px", claimed("a-data"), reachedBy(ebsZone, c)),
				claimOf("a-data", boundTo("px"), ownedByPod("uid-a"))}, zones: []string{c}},
		{name: "in-tree class", reason: "the CSI driver serves the classes of the in-tree one", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", madeBy("kubernetes.io/aws-ebs"), allowedIn(corev1.LabelTopologyZone, b))}, zones: []string{b}},
		{name: "label of a pool", reason: "a label that a NodePool defines may bound where volumes are made", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x"), classNamed("fast", allowedIn("example.com/rack", "r1"))}, zones: anywhere},
		{name: "sole user", reason: "a claim for one pod at a time is free for its first user", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", inMode(corev1.ReadWriteOncePod)), classNamed("fast", allowedIn(ebsZone, b))}, zones: []string{b}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool := nodePool("p", onDemand())
			pool.Spec.Template.Labels = map[string]string{"example.com/rack": "r1"}
			w := world{pods: []*corev1.Pod{newPod("a", "1", "1Gi", test.pod)}, pools: []plan.Pool{{NodePool: pool, Types: smallCatalogue()}}}
			input := w.input()
			input.Snapshot.Storage = storageOf(w.interner(), test.objects...)
			p := plan.Pack(input)
			if len(p.Claims) != 1 {
				t.Fatalf("%d claims, want one: %s; unplaced %v", len(p.Claims), test.reason, reasonsOf(p))
			}
			if diff := cmp.Diff(test.zones, p.Claims[0].Zones); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}

func ownedByPod(uid types.UID) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid}}
		claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	}
}

func reasonsOf(p plan.Plan) []string {
	var reasons []string
	for _, unplaced := range p.Unplaced {
		for _, reason := range unplaced.Reasons {
			reasons = append(reasons, reason.Message)
		}
	}
	return reasons
}

// A pod whose volumes no node could provide is left with one sentence, whatever the pools.
func TestVolumesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	deletion := metav1.NewTime(now)
	tests := []struct {
		name    string
		pod     func(*corev1.Pod)
		objects []metav1.Object
		want    string
	}{
		{name: "missing", pod: mounts("x"), want: `persistent volume claim "x" does not exist`},
		{name: "being deleted", pod: mounts("x"),
			objects: []metav1.Object{classNamed("fast"), claimOf("x", func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &deletion })},
			want:    `persistent volume claim "x" is being deleted`},
		{name: "lost", pod: mounts("x"),
			objects: []metav1.Object{classNamed("fast"), claimOf("x", boundTo("px"), func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost })},
			want:    `persistent volume claim "x" has lost its volume px`},
		{name: "no class", pod: mounts("x"), objects: []metav1.Object{claimOf("x", ofClass("")), classNamed("fast", isDefault)},
			want: `persistent volume claim "x" has no volume and wants none to be made for it: it names no StorageClass`},
		{name: "no default class", pod: mounts("x"), objects: []metav1.Object{claimOf("x", ofNoClass), classNamed("fast")},
			want: `persistent volume claim "x" has no volume and names no StorageClass, and there is no default one`},
		{name: "class missing", pod: mounts("x"), objects: []metav1.Object{claimOf("x")},
			want: `persistent volume claim "x" names StorageClass fast, which does not exist`},
		{name: "immediate", pod: mounts("x"), objects: []metav1.Object{claimOf("x"), classNamed("fast", bindsAtOnce)},
			want: `persistent volume claim "x" has no volume yet: its StorageClass fast has the volumeBindingMode Immediate, so that it has to be bound first`},
		{name: "nothing provisions", pod: mounts("x"), objects: []metav1.Object{claimOf("x"), classNamed("fast", madeBy("kubernetes.io/no-provisioner"))},
			want: `persistent volume claim "x" matches no free volume, and its StorageClass fast makes none`},
		{name: "removed provisioner", pod: mounts("x"), objects: []metav1.Object{claimOf("x"), classNamed("fast", madeBy("kubernetes.io/glusterfs"))},
			want: `persistent volume claim "x" waits for a volume of StorageClass fast, whose provisioner kubernetes.io/glusterfs is not part of Kubernetes any more`},
		{name: "unknown topology", pod: mounts("x"), objects: []metav1.Object{claimOf("x"), classNamed("fast", allowedIn("example.com/rack", "r1"))},
			want: `persistent volume claim "x" waits for a volume of StorageClass fast, whose allowedTopologies need the label example.com/rack, which no node has and no NodePool defines`},
		{name: "topology of nothing", pod: mounts("x"), objects: []metav1.Object{claimOf("x"), classNamed("fast", func(class *storagev1.StorageClass) {
			class.AllowedTopologies = []corev1.TopologySelectorTerm{{}}
		})}, want: `persistent volume claim "x" waits for a volume of StorageClass fast, whose allowedTopologies match no node`},
		{name: "volume missing", pod: mounts("x"), objects: []metav1.Object{claimOf("x", boundTo("px"))},
			want: `persistent volume claim "x" is bound to volume px, which does not exist`},
		{name: "volume being deleted", pod: mounts("x"),
			objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), func(v *corev1.PersistentVolume) { v.DeletionTimestamp = &deletion })},
			want:    `persistent volume claim "x" is bound to volume px, which is being deleted`},
		{name: "volume of another", pod: mounts("x"), objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("y"))},
			want: `persistent volume claim "x" asks for volume px, which belongs to claim default/y`},
		{name: "volume nowhere", pod: mounts("x"), objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reached())},
			want: `persistent volume claim "x" is bound to volume px, whose node affinity matches no node`},
		{name: "apart", pod: mounts("x", "y"), objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(ebsZone, "us-east-1a")),
			claimOf("y", boundTo("py")), volumeOf("py", claimed("y"), reachedBy(ebsZone, "us-east-1b"))},
			want: `no node reaches its persistent volume claims together: "x" (topology.kubernetes.io/zone In [us-east-1a]), "y" (topology.kubernetes.io/zone In [us-east-1b])`},
		{name: "made for a node that is gone", pod: mounts("x"), objects: []metav1.Object{classNamed("fast"), claimOf("x", selectedNode("gone"))},
			want: `persistent volume claim "x" waits for a volume that is made for node gone, which is gone`},
		{name: "another's ephemeral claim", pod: scratch("data", "fast"), objects: []metav1.Object{classNamed("fast"), claimOf("a-data")},
			want: `persistent volume claim "a-data" exists already and is not the pod's own, which its ephemeral volume needs`},
		{name: "ephemeral of no class", pod: scratch("data", "none"), want: `persistent volume claim "a-data" names StorageClass none, which does not exist`},
		{name: "the first of several", pod: mounts("x", "y"), objects: []metav1.Object{claimOf("x", boundTo("px")), volumeOf("px", claimed("x"))},
			want: `persistent volume claim "y" does not exist`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: []*corev1.Pod{newPod("a", "1", "1Gi", test.pod)}, pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}},
				nodes: []*plan.Node{existing("n", "m6i.xlarge")}}
			input := w.input()
			input.Snapshot.Storage = storageOf(w.interner(), test.objects...)
			p := plan.Pack(input)
			if diff := cmp.Diff([]string{test.want}, reasonsOf(p)); diff != "" || len(p.Claims)+len(p.Placements) > 0 {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func selectedNode(name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{"volume.kubernetes.io/selected-node": name}
	}
}

// Volumes on an existing node: where they are, how many it can attach, and which other pods use them.
func TestVolumesOnExistingNodes(t *testing.T) {
	t.Parallel()
	bound := func(names ...string) []metav1.Object {
		objects := []metav1.Object{classNamed("fast")}
		for _, name := range names {
			objects = append(objects, claimOf(name, boundTo("p"+name)), volumeOf("p"+name, claimed(name), reachedBy(ebsZone, "us-east-1a")))
		}
		return objects
	}
	each := func(n int, options ...func(i int, pod *corev1.Pod)) []*corev1.Pod {
		pods := manyPods(n, "a", "100m", "100Mi")
		for i, pod := range pods {
			for _, option := range options {
				option(i, pod)
			}
		}
		return pods
	}
	own := func(i int, pod *corev1.Pod) { mounts(fmt.Sprint("x", i))(pod) }
	same := func(_ int, pod *corev1.Pod) { mounts("x0")(pod) }
	inline := func(id string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
				AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: id}}})
		}
	}
	on := func(w *world, n *plan.Node, pods ...*corev1.Pod) {
		for _, pod := range pods {
			pod.Spec.NodeName, pod.Status.Conditions = n.Name, nil
			n.Pods = append(n.Pods, w.interner().Pod(pod))
		}
	}
	x := []string{"x0", "x1", "x2", "x3", "x4"}
	tests := []struct {
		name, reason string
		node         *plan.Node
		there        []*corev1.Pod
		pods         []*corev1.Pod
		objects      []metav1.Object
		placed       int
	}{
		{name: "no limit", reason: "a driver that names no limit has none", node: existing("n", "m6i.4xlarge"), pods: each(5, own), objects: bound(x...), placed: 5},
		{name: "limit", reason: "each pod brings a volume of its own", node: existing("n", "m6i.4xlarge", attaches(3)), pods: each(5, own),
			objects: bound(x...), placed: 3},
		{name: "nothing left", reason: "a node that may attach nothing takes no such pod", node: existing("n", "m6i.4xlarge", attaches(0)),
			pods: each(1, own), objects: bound(x...), placed: 0},
		{name: "without volumes", reason: "other pods do not care", node: existing("n", "m6i.4xlarge", attaches(0)), pods: each(5), placed: 5},
		{name: "another driver's limit", reason: "limits are the driver's own",
			node: existing("n", "m6i.4xlarge", func(n *plan.Node) { n.AttachLimits = map[string]int{"other": 1} }), pods: each(5, own),
			objects: bound(x...), placed: 5},
		{name: "shared", reason: "a volume of several pods is attached once", node: existing("n", "m6i.4xlarge", attaches(1)),
			pods: each(5, same), objects: bound("x0"), placed: 5},
		{name: "twice in one pod", reason: "also when one pod mounts it twice", node: existing("n", "m6i.4xlarge", attaches(1)),
			pods: each(1, same, same), objects: bound("x0"), placed: 1},
		{name: "used there", reason: "volumes of the node's pods count", node: existing("n", "m6i.4xlarge", attaches(3)),
			there: each(2, own), pods: each(3, func(i int, pod *corev1.Pod) { mounts(fmt.Sprint("x", i+2))(pod) }), objects: bound(x...), placed: 1},
		{name: "shared with one there", reason: "a volume that is there already takes no place",
			node: existing("n", "m6i.4xlarge", attaches(1)), there: each(1, own), pods: each(2, same), objects: bound("x0"), placed: 2},
		{name: "attached", reason: "what is attached and not used takes a place until it is detached",
			node: existing("n", "m6i.4xlarge", attaches(3), func(n *plan.Node) { n.Attached = []string{"px3", "px4"} }), pods: each(3, own),
			objects: bound(x...), placed: 1},
		{name: "attached and used", reason: "what is attached and used takes one", node: existing("n", "m6i.4xlarge", attaches(3), func(n *plan.Node) { n.Attached = []string{"px0"} }), there: each(1, own),
			pods: each(3, func(i int, pod *corev1.Pod) { mounts(fmt.Sprint("x", i+1))(pod) }), objects: bound(x...), placed: 2},
		{name: "inline", reason: "in-tree EBS volumes that pods name themselves count as the driver's", node: existing("n", "m6i.4xlarge", attaches(2)), there: each(1, func(_ int, pod *corev1.Pod) { inline("aws://us-east-1a/vol-other")(pod) }),
			pods: each(3, own), objects: bound(x...), placed: 1},
		{name: "unbound", reason: "volumes that are still to be made count", node: existing("n", "m6i.4xlarge", attaches(2)), pods: each(3, own),
			objects: []metav1.Object{classNamed("fast"), claimOf("x0"), claimOf("x1"), claimOf("x2")}, placed: 2},
		{name: "in-tree class", reason: "also those of an in-tree class", node: existing("n", "m6i.4xlarge", attaches(2)), pods: each(3, own),
			objects: []metav1.Object{classNamed("fast", madeBy("kubernetes.io/aws-ebs")), claimOf("x0"), claimOf("x1"), claimOf("x2")}, placed: 2},
		{name: "other driver", reason: "volumes of another driver do not count", node: existing("n", "m6i.4xlarge", attaches(0)), pods: each(2, own),
			objects: []metav1.Object{classNamed("fast", madeBy("efs.csi.aws.com")), claimOf("x0"), claimOf("x1")}, placed: 2},
		{name: "elsewhere", reason: "a node in another zone does not reach the volume",
			node: existing("n", "m6i.4xlarge", func(n *plan.Node) { n.Labels[corev1.LabelTopologyZone] = "us-east-1b" }),
			pods: each(1, own), objects: bound("x0"), placed: 0},
		{name: "local", reason: "a volume on the node's own disk is reached there", node: existing("n", "m6i.4xlarge"), pods: each(1, own),
			objects: []metav1.Object{claimOf("x0"), classNamed("fast", madeBy("kubernetes.io/no-provisioner")), volumeOf("local", reachedBy(corev1.LabelHostname, "n"))}, placed: 1},
		{name: "local to another", reason: "and nowhere else", node: existing("n", "m6i.4xlarge"), pods: each(1, own),
			objects: []metav1.Object{claimOf("x0"), classNamed("fast", madeBy("kubernetes.io/no-provisioner")), volumeOf("local", reachedBy(corev1.LabelHostname, "m"))}, placed: 0},
		{name: "made for the node", reason: "while a volume is made for a node, its pod goes there", node: existing("n", "m6i.4xlarge"), pods: each(1, own),
			objects: []metav1.Object{classNamed("fast"), claimOf("x0", selectedNode("n"))}, placed: 1},
		{name: "label of a node", reason: "a class may allow what only a node that exists has", node: existing("n", "m6i.4xlarge", func(n *plan.Node) { n.Labels["example.com/rack"] = "r1" }), pods: each(1, own),
			objects: []metav1.Object{claimOf("x0"), classNamed("fast", allowedIn("example.com/rack", "r1"))}, placed: 1},
		{name: "one pod at a time, in use", reason: "a claim for one pod at a time is not to be had while another runs", node: existing("n", "m6i.4xlarge"), there: each(1, own), pods: each(1, same),
			objects: []metav1.Object{claimOf("x0", boundTo("p"), inMode(corev1.ReadWriteOncePod)), volumeOf("p", claimed("x0"))}, placed: 0},
		{name: "one pod at a time, several wait", reason: "of those that wait, one gets it", node: existing("n", "m6i.4xlarge"), pods: each(3, same),
			objects: []metav1.Object{claimOf("x0", boundTo("p"), inMode(corev1.ReadWriteOncePod)), volumeOf("p", claimed("x0"))}, placed: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods, nodes: []*plan.Node{test.node}}
			for i, pod := range test.there {
				pod.Name, pod.UID = fmt.Sprint("there-", i), types.UID(fmt.Sprint("uid-there-", i))
			}
			on(&w, test.node, test.there...)
			input := w.input()
			input.Snapshot.Storage = storageOf(w.interner(), test.objects...)
			p := plan.Pack(input)
			if len(p.Placements) != test.placed || len(p.Unplaced) != len(test.pods)-test.placed {
				t.Errorf("%d pods are placed and %d not, want %d: %s; %v", len(p.Placements), len(p.Unplaced), test.placed, test.reason, reasonsOf(p))
			}
		})
	}
}

// The pods of a StatefulSet are planned for together, wherever the volumes of each are.
func TestVolumesOfAStatefulSet(t *testing.T) {
	t.Parallel()
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}}
	objects := []metav1.Object{classNamed("fast")}
	zones := map[string]string{}
	for i := range 9 {
		pod := newPod(fmt.Sprint("db-", i), "1500m", "2Gi", mounts(fmt.Sprint("data-db-", i)))
		zones[string(pod.UID)] = threeZones[i%3]
		name := pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName
		objects = append(objects, claimOf(name, boundTo("p-"+name)), volumeOf("p-"+name, claimed(name), reachedBy(ebsZone, threeZones[i%3])))
		w.pods = append(w.pods, pod)
	}
	input := w.input()
	input.Snapshot.Storage = storageOf(w.interner(), objects...)
	classes := map[*plan.Class]bool{}
	for _, pod := range input.Snapshot.Pending {
		classes[pod.Class] = true
	}
	if len(classes) != 1 {
		t.Errorf("the pods are of %d classes", len(classes))
	}
	p := plan.Pack(input)
	if len(p.Unplaced) > 0 {
		t.Fatalf("unplaced: %v", reasonsOf(p))
	}
	for _, claim := range p.Claims {
		for _, pod := range claim.Pods {
			if !slices.Equal(claim.Zones, []string{zones[string(pod)]}) {
				t.Errorf("%s is planned for %v, its volume is in %s", pod, claim.Zones, zones[string(pod)])
			}
		}
	}
	if len(p.Claims) > 6 {
		t.Errorf("%d nodes for three pods in each of three zones", len(p.Claims))
	}
}

// A claim for one pod at a time goes to the pod that the kube-scheduler tries first. The others are told which pod they
// wait for.
func TestOnePodAtATime(t *testing.T) {
	t.Parallel()
	high := int32(10)
	w := world{
		pods: []*corev1.Pod{
			newPod("a", "1", "1Gi", mounts("x")),
			newPod("b", "1", "1Gi", mounts("x"), func(pod *corev1.Pod) { pod.Spec.Priority = &high }),
		},
		pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}},
	}
	input := w.input()
	input.Snapshot.Storage = storageOf(w.interner(), classNamed("fast"), claimOf("x", inMode(corev1.ReadWriteOncePod)))
	p := plan.Pack(input)
	if diff := cmp.Diff([]string{`persistent volume claim "x" is for one pod at a time, and default/b comes first`}, reasonsOf(p)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	running := w.interner().Pod(newPod("c", "1", "1Gi", mounts("x"), func(pod *corev1.Pod) { pod.Spec.NodeName = "n" }))
	input.Snapshot.Nodes = []*plan.Node{existing("n", "m6i.xlarge", func(n *plan.Node) { n.Pods = []*plan.Pod{running} })}
	p = plan.Pack(input)
	want := `persistent volume claim "x" is for one pod at a time, and default/c uses it`
	if diff := cmp.Diff([]string{want, want}, reasonsOf(p)); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	input.Snapshot.Nodes[0].Promised = []types.UID{input.Snapshot.Pending[0].UID}
	if diff := cmp.Diff([]string{want, want}, reasonsOf(plan.Pack(input))); diff != "" {
		t.Errorf("reasons where an earlier plan put one of them on the node (-want +got):\n%s", diff)
	}
	input.Snapshot.Nodes[0].Deleting = true
	if p = plan.Pack(input); len(p.Claims) != 1 || len(p.Claims[0].Pods) != 1 || p.Claims[0].Pods[0] != running.UID {
		t.Errorf("the pod that uses the claim does not move with it: %v, unplaced %v", p.Claims, reasonsOf(p))
	}
}

// A new node is assumed to attach as many volumes as those of its type do. A claim lists no type that attaches fewer
// than its pods need.
func TestAttachLimitsOfNewNodes(t *testing.T) {
	t.Parallel()
	w := world{pods: manyPods(6, "a", "300m", "256Mi"), pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
	objects := []metav1.Object{classNamed("fast")}
	for i, pod := range w.pods {
		mounts(fmt.Sprint("x", i))(pod)
		objects = append(objects, claimOf(fmt.Sprint("x", i)))
	}
	limits := map[string]int{}
	for _, typ := range smallCatalogue() {
		limits[typ.Name] = 3
		if typ.Name == "m6i.large" || typ.Name == "c6i.xlarge" {
			limits[typ.Name] = 2
		}
		w.nodes = append(w.nodes, existing("n-"+typ.Name, typ.Name, attaches(limits[typ.Name]), func(n *plan.Node) { n.Cordoned = true }))
	}
	input := w.input()
	input.Snapshot.Storage = storageOf(w.interner(), objects...)
	p := plan.Pack(input)
	if len(p.Unplaced) > 0 {
		t.Fatalf("unplaced: %v", reasonsOf(p))
	}
	for _, claim := range p.Claims {
		for _, typ := range claim.InstanceTypes {
			if len(claim.Pods) > limits[typ] {
				t.Errorf("%d pods with a volume each are planned for a claim that may become %s, which attaches %d", len(claim.Pods), typ, limits[typ])
			}
		}
	}
}

// Volumes made by hand exist once: no node is launched for a pod whose claim would find none left.
func TestVolumesMadeByHand(t *testing.T) {
	t.Parallel()
	small := func(v *corev1.PersistentVolume) { v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("5Gi") }
	modest := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("5Gi")
	}
	byHand := classNamed("fast", madeBy("kubernetes.io/no-provisioner"))
	left := `persistent volume claim %q matches only volumes that other claims wait for, and its StorageClass fast makes none`
	tests := []struct {
		name, reason string
		objects      []metav1.Object
		zones        map[string]string
		unplaced     string
	}{
		{name: "enough", reason: "each pod goes where the volume is that it will get",
			objects: []metav1.Object{byHand, claimOf("x0"), claimOf("x1"), volumeOf("pa", reachedBy(ebsZone, "us-east-1a")), volumeOf("pb", reachedBy(ebsZone, "us-east-1b"))},
			zones:   map[string]string{"uid-a-0000": "us-east-1a", "uid-a-0001": "us-east-1b"}, unplaced: ""},
		{name: "too few", reason: "the pod that came last goes without",
			objects: []metav1.Object{byHand, claimOf("x0"), claimOf("x1"), volumeOf("pb", reachedBy(ebsZone, "us-east-1b"))},
			zones:   map[string]string{"uid-a-0000": "us-east-1b"}, unplaced: fmt.Sprintf(left, "x1")},
		{name: "moved", reason: "the first takes another, where the second can only have one",
			objects: []metav1.Object{byHand, claimOf("x0", modest), claimOf("x1"), volumeOf("pa", reachedBy(ebsZone, "us-east-1a")), volumeOf("pb", small, reachedBy(ebsZone, "us-east-1b"))},
			zones:   map[string]string{"uid-a-0000": "us-east-1b", "uid-a-0001": "us-east-1a"}, unplaced: ""},
		{name: "larger first", reason: "it is not the size that decides who goes without",
			objects: []metav1.Object{byHand, claimOf("x0"), claimOf("x1", modest), volumeOf("pa", reachedBy(ebsZone, "us-east-1a"))},
			zones:   map[string]string{"uid-a-0000": "us-east-1a"}, unplaced: fmt.Sprintf(left, "x1")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: manyPods(2, "a", "1", "1Gi"), pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
			for i, pod := range w.pods {
				mounts(fmt.Sprint("x", i))(pod)
			}
			input := w.input()
			input.Snapshot.Storage = storageOf(w.interner(), test.objects...)
			p := plan.Pack(input)
			zones := map[string]string{}
			for _, claim := range p.Claims {
				for _, pod := range claim.Pods {
					zones[string(pod)] = fmt.Sprint(claim.Zones)
				}
			}
			want := map[string]string{}
			for pod, zone := range test.zones {
				want[pod] = "[" + zone + "]"
			}
			if diff := cmp.Diff(want, zones); diff != "" {
				t.Errorf("%s: zones (-want +got):\n%s", test.reason, diff)
			}
			if got := fmt.Sprint(reasonsOf(p)); got != fmt.Sprint([]string{test.unplaced}) && !(test.unplaced == "" && got == "[]") {
				t.Errorf("reasons %s, want %q", got, test.unplaced)
			}
		})
	}
}

// Requirements of the pod and of its volumes apply together.
func TestVolumesAndNodeSelection(t *testing.T) {
	t.Parallel()
	w := world{
		pods:  []*corev1.Pod{newPod("a", "1", "1Gi", mounts("x"), selects(corev1.LabelTopologyZone, "us-east-1a"))},
		pools: []plan.Pool{{NodePool: nodePool("p", requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot")), Types: smallCatalogue()}},
	}
	input := w.input()
	input.Snapshot.Storage = storageOf(w.interner(), claimOf("x", boundTo("px")), volumeOf("px", claimed("x"), reachedBy(ebsZone, "us-east-1b")))
	if p := plan.Pack(input); len(p.Claims) != 0 || len(p.Unplaced) != 1 {
		t.Errorf("a pod of zone a with a volume in zone b gets %v", p.Claims)
	}
}
