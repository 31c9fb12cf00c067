package scheduling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/test/flow"
)

const (
	// driver creates volumes, each in the zone of the node that the kube-scheduler has chosen for its pod.
	driver = "disk.example.com"
	// limitedDriver is another driver, of whose volumes a node attaches three.
	limitedDriver = "few-disks.example.com"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

// provision acts as the provisioner of both drivers until the test ends.
func provision(t *testing.T, kube client.Client, v *view) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	claims, err := v.GetInformer(ctx, &corev1.PersistentVolumeClaim{})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan *corev1.PersistentVolumeClaim, 1000)
	take := func(object any) {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Annotations[selectedNode] != "" && claim.Spec.VolumeName == "" {
			waiting <- claim
		}
	}
	if _, err := claims.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, object any) { take(object) }}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case claim := <-waiting:
				if err := makeVolume(ctx, kube, claim); err != nil && ctx.Err() == nil {
					t.Errorf("provision %s/%s: %v", claim.Namespace, claim.Name, err)
				}
			}
		}
	}()
}

// makeVolume creates the volume of a claim in the zone of the chosen node, unless it exists.
func makeVolume(ctx context.Context, kube client.Client, claim *corev1.PersistentVolumeClaim) error {
	var class storagev1.StorageClass
	if err := kube.Get(ctx, client.ObjectKey{Name: *claim.Spec.StorageClassName}, &class); err != nil {
		return err
	}
	if class.Provisioner != driver && class.Provisioner != limitedDriver {
		return nil
	}
	var node corev1.Node
	if err := kube.Get(ctx, client.ObjectKey{Name: claim.Annotations[selectedNode]}, &node); err != nil {
		return err
	}
	name := "pvc-" + string(claim.UID)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}, AccessModes: claim.Spec.AccessModes, StorageClassName: class.Name,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: name}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{node.Labels[zoneKey]}}}}}}},
		},
	}
	return client.IgnoreAlreadyExists(kube.Create(ctx, volume))
}

// class returns a StorageClass whose volumes wait for their first pod, limited to these zones if there are any.
func class(name, provisioner string, zones ...string) string {
	topologies := ""
	if len(zones) > 0 {
		topologies = fmt.Sprintf(", allowedTopologies: [{matchLabelExpressions: [{key: %s, values: [%s]}]}]", zoneKey, strings.Join(zones, ", "))
	}
	return fmt.Sprintf("\n---\n{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: %s}, provisioner: %s, volumeBindingMode: WaitForFirstConsumer%s}", name, provisioner, topologies)
}

// claim returns a PersistentVolumeClaim with further fields.
func claim(name, class string, further ...string) string {
	fields := append([]string{fmt.Sprintf(`storageClassName: "%s", resources: {requests: {storage: 1Gi}}`, class)}, further...)
	spec := strings.Join(fields, ", ")
	if !strings.Contains(spec, "accessModes") {
		spec += ", accessModes: [ReadWriteOnce]"
	}
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {%s}}", name, spec)
}

// volume returns an existing PersistentVolume in one of some zones, for a claim if one is named.
func volume(name, class, forClaim string, zones ...string) string {
	ref := ""
	if namespace, claim, named := strings.Cut(forClaim, "/"); named {
		ref = fmt.Sprintf(", claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: %s, name: %s}", namespace, claim)
	}
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: %[1]s}, spec: {storageClassName: "%[2]s", capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Retain,
  csi: {driver: %[3]s, volumeHandle: %[1]s}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [%[4]s]}]}}%[5]s}}`, name, class, driver, flow.In(zoneKey, zones...), ref)
}

// mounting returns the field of a pod's spec that mounts claims.
func mounting(claims ...string) string {
	var volumes []string
	for _, claim := range claims {
		volumes = append(volumes, fmt.Sprintf("{name: %[1]s, persistentVolumeClaim: {claimName: %[1]s}}", claim))
	}
	return "volumes: [" + strings.Join(volumes, ", ") + "]"
}

// ephemeral returns the field of a pod's spec with a generic ephemeral volume.
func ephemeral(class string) string {
	return "volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: " + class + ", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]"
}

// attachThree limits the scenario's nodes to three volumes of the limited driver, as its node plugin would.
func (p *play) attachThree() {
	p.T.Helper()
	for _, n := range p.outcome().nodes {
		limit := int32(3)
		node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: limitedDriver, NodeID: n.Name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}}}}
		if err := p.Create(p.Context(), node); client.IgnoreAlreadyExists(err) != nil {
			p.T.Fatal(err)
		}
	}
}

// volumeScenarios are about the places that volumes allow for pods.
func volumeScenarios() []scenario {
	const tiny = "cpu: 100m, memory: 128Mi"
	broken := func(name, rule, said, objects string, claims ...string) scenario {
		return scenario{name: name, rule: rule, plans: noPlan, steps: []step{{objects: objects, pods: []workload{{name: "web", count: 1, spec: []string{mounting(claims...)}, stays: said}}}}}
	}
	return []scenario{{
		name: "volume-waits", rule: "a volume that waits for its first pod is made where the pod's node is",
		steps: []step{{
			objects: class("volume-waits", driver) + claim("one", "volume-waits") + claim("two", "volume-waits"),
			pods: []workload{
				{name: "first", count: 1, spec: []string{mounting("one")}},
				{name: "second", count: 1, spec: []string{mounting("two")}}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "volume-topologies", rule: "a StorageClass' allowedTopologies bind the pods of its volumes",
		steps: []step{{objects: class("volume-topologies", driver, "us-east-1b") + claim("data", "volume-topologies"),
			pods: []workload{{name: "web", count: 2, spec: []string{mounting("data")}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1b"), nodes(1)},
	}, {
		name: "volume-zone", rule: "a volume's node affinity binds the pods that mount it",
		steps: []step{{objects: volume("volume-zone", "", "volume-zone/data", "us-east-1c") + claim("data", "", "volumeName: volume-zone"),
			pods: []workload{{name: "web", count: 2, spec: []string{mounting("data")}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	}, {
		name: "volume-two", rule: "a pod with two volumes goes where both can be",
		steps: []step{{objects: volume("volume-two-a", "", "volume-two/one", "us-east-1a", "us-east-1b") + volume("volume-two-b", "", "volume-two/two", "us-east-1b", "us-east-1c") +
			claim("one", "", "volumeName: volume-two-a") + claim("two", "", "volumeName: volume-two-b"),
			pods: []workload{{name: "web", count: 1, spec: []string{mounting("one", "two")}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1b"), nodes(1)},
	}, {
		name: "volume-spread", rule: "volumes in several zones take each pod to its own",
		steps: []step{{objects: volume("volume-spread-a", "", "volume-spread/one", "us-east-1a") + volume("volume-spread-b", "", "volume-spread/two", "us-east-1b") +
			claim("one", "", "volumeName: volume-spread-a") + claim("two", "", "volumeName: volume-spread-b"),
			pods: []workload{{name: "first", count: 1, spec: []string{mounting("one")}}, {name: "second", count: 1, spec: []string{mounting("two")}}}}},
		expect: []expectation{on("first", zoneKey, "us-east-1a"), on("second", zoneKey, "us-east-1b"), nodes(2)},
	}, {
		name: "volume-by-hand", rule: "where volumes are made by hand, a pod goes where a free one is",
		steps: []step{{objects: class("volume-by-hand", "kubernetes.io/no-provisioner") + volume("volume-by-hand", "volume-by-hand", "", "us-east-1c") + claim("data", "volume-by-hand"),
			pods: []workload{{name: "web", count: 1, spec: []string{mounting("data")}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	}, {
		name: "volume-ephemeral", rule: "generic ephemeral volumes bind their pods as others do",
		steps:  []step{{objects: class("volume-ephemeral", driver, "us-east-1c"), pods: []workload{{name: "web", count: 3, spec: []string{ephemeral("volume-ephemeral")}}}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(2)},
	}, {
		name: "volume-one-pod", rule: "a claim for one pod at a time serves one pod, and nothing is launched for the next",
		steps: []step{{objects: class("volume-one-pod", driver) + claim("data", "volume-one-pod", "accessModes: [ReadWriteOncePod]"),
			pods: []workload{{name: "web", count: 2, bound: 1, spec: []string{mounting("data")}, stays: "one pod at a time"}}}},
		expect: []expectation{nodes(1)},
	}, {
		name: "volume-attach-limit", rule: "a node takes no more volumes than its driver can attach", plans: 2,
		steps: []step{
			{objects: class("volume-attach-limit", limitedDriver), pods: []workload{{name: "first", count: 1, requests: tiny, spec: []string{ephemeral("volume-attach-limit")}}}},
			{act: (*play).attachThree, pods: []workload{{name: "more", count: 3, requests: tiny, spec: []string{ephemeral("volume-attach-limit")}}}}},
		expect: []expectation{nodes(2), spread("more", hostKey, 2, 1)},
	}, {
		name: "volume-late", rule: "a pod that waits for its claim is planned for when the claim comes",
		steps: []step{{pods: []workload{{name: "web", count: 1, spec: []string{mounting("data")}}}, then: func(p *play) {
			p.Await("the pod told of the claim", settleWithin, func() (bool, string) {
				o := p.outcome()
				return p.told(o, "web-0", `persistent volume claim "data" does not exist`), o.said["web-0"]
			})
			p.create(volume("volume-late", "volume-late", "", "us-east-1c") + claim("data", "volume-late", "volumeName: volume-late"))
		}}},
		expect: []expectation{on("web", zoneKey, "us-east-1c"), nodes(1)},
	},
		broken("volume-conflict", "a pod whose volumes are in different zones is told so", "no node reaches its persistent volume claims together",
			volume("volume-conflict-a", "", "volume-conflict/one", "us-east-1a")+volume("volume-conflict-c", "", "volume-conflict/two", "us-east-1c")+
				claim("one", "", "volumeName: volume-conflict-a")+claim("two", "", "volumeName: volume-conflict-c"), "one", "two"),
		broken("volume-missing", "a pod is told of a claim that does not exist", `persistent volume claim "data" does not exist`, "", "data"),
		broken("volume-immediate", "a claim whose StorageClass binds at once has to be bound first", "Immediate",
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: volume-immediate}, provisioner: nobody.example.com, volumeBindingMode: Immediate}`+claim("data", "volume-immediate"), "data"),
		broken("volume-no-class", "a claim without volume and StorageClass is told so", "names no StorageClass", claim("data", ""), "data"),
		broken("volume-class-missing", "a claim whose StorageClass does not exist is told so", "does not exist", claim("data", "volume-class-missing"), "data"),
		broken("volume-gone", "a claim that is bound to a volume which does not exist is told so", "which does not exist", claim("data", "", "volumeName: volume-gone"), "data"),
	}
}
