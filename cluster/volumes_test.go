package cluster

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

var storeNames = []string{"persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "volumeattachments", "namespaces"}

func newStores() map[string]map[string]runtime.Object {
	stores := map[string]map[string]runtime.Object{}
	for _, name := range storeNames {
		stores[name] = map[string]runtime.Object{}
	}
	return stores
}

// storeOf returns the store that the Reflector of a resource fills.
func storeOf(m *Mirror, resource string) cache.ReflectorStore {
	return map[string]cache.ReflectorStore{
		"persistentvolumeclaims": m.volumeClaims, "persistentvolumes": m.volumes, "storageclasses": m.storageClasses,
		"csinodes": m.csiNodes, "volumeattachments": m.attachments, "namespaces": m.namespaces.feed,
	}[resource]
}

func drawStored(r *rapid.T, resource string, names *rapid.Generator[string]) runtime.Object {
	name, other := names.Draw(r, "name"), names.Draw(r, "other")
	switch resource {
	case "persistentvolumeclaims":
		return volumeClaimFor(name, rapid.SampledFrom([]string{"", other}).Draw(r, "bound to"))
	case "persistentvolumes":
		return persistentVolume(name, rapid.SampledFrom([]string{"", other}).Draw(r, "claim"))
	case "storageclasses":
		return delayedClass(name, rapid.SampledFrom([]string{"x", "y"}).Draw(r, "provisioner"))
	case "csinodes":
		return attachLimit(name, rapid.Int32Range(1, 2).Draw(r, "limit"))
	case "volumeattachments":
		return attachedVolume(name, other, names.Draw(r, "volume"))
	default:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": other}}}
	}
}

func claimVolume(claim string) corev1.Volume {
	return corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func volumeClaimFor(name, volume string) *corev1.PersistentVolumeClaim {
	class := "fast"
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume, StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
}

func persistentVolume(name, claim string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: "us-east-1a"}},
		Spec: corev1.PersistentVolumeSpec{StorageClassName: "fast", PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + name}}},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	if claim != "" {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
		volume.Status.Phase = corev1.VolumeBound
	}
	return volume
}

func delayedClass(name, provisioner string) *storagev1.StorageClass {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &wait}
}

func attachLimit(node string, limit int32) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "ebs.csi.aws.com", NodeID: node, Allocatable: &storagev1.VolumeNodeResources{Count: &limit}}, {Name: "efs.csi.aws.com", NodeID: node}}}}
}

func attachedVolume(name, node, volume string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "ebs.csi.aws.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
}

// contents returns the shape of a snapshot, with its storage and namespaces.
func contents(s *plan.Snapshot) []string {
	lines := shape(s)
	for _, claim := range sorted(s.Storage.Claims) {
		lines = append(lines, fmt.Sprintf("volume claim %s is bound to %q", claim.Key(), claim.Volume))
	}
	for _, volume := range sorted(s.Storage.Volumes) {
		lines = append(lines, fmt.Sprintf("volume %s of claim %q", volume.Name, volume.Claim))
	}
	for _, class := range sorted(s.Storage.Classes) {
		lines = append(lines, fmt.Sprintf("class %s of %s", class.Name, class.Provisioner))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces)) {
		lines = append(lines, fmt.Sprintf("namespace %s %v", name, s.Namespaces[name]))
	}
	return lines
}

// awaitContents polls until the snapshot has these contents. Changes of storage publish an event only where a pod
// waits.
func awaitContents(t *testing.T, m *Mirror, why string, want ...string) {
	t.Helper()
	ctx := within(t)
	for {
		diff := cmp.Diff(want, contents(m.Snapshot()))
		if diff == "" {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%s (-want +got):\n%s", why, diff)
		}
	}
}

// A snapshot shows volumes and namespaces as they are served, and forgets them with their objects.
func TestSnapshotShowsVolumesAndNamespaces(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	node, attached := testNode("n", ""), attachedVolume("a1", "n", "pv")
	server.put("nodes", node)
	server.put("csinodes", attachLimit("n", 25))
	server.put("volumeattachments", attached)
	server.put("volumeattachments", attachedVolume("a2", "elsewhere", "pv2"))
	server.put("persistentvolumeclaims", volumeClaimFor("data", "pv"))
	server.put("persistentvolumes", persistentVolume("pv", "data"))
	server.put("storageclasses", delayedClass("fast", "kubernetes.io/aws-ebs"))
	server.put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "a"}}})
	m := runMirror(t, server, Options{})
	awaitContents(t, m, "the first list",
		"claim= node=n provider=: attached=[pv] limits=map[ebs.csi.aws.com:25]", `volume claim default/data is bound to "pv"`,
		`volume pv of claim "default/data"`, "class fast of ebs.csi.aws.com", "namespace default map[team:a]")

	server.remove("volumeattachments", attached)
	server.remove("csinodes", attachLimit("n", 25))
	server.remove("persistentvolumes", persistentVolume("pv", "data"))
	server.remove("storageclasses", delayedClass("fast", ""))
	server.put("persistentvolumeclaims", volumeClaimFor("data", "other"))
	server.put("namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "b"}}})
	awaitContents(t, m, "what is gone is not shown", "claim= node=n provider=:", `volume claim default/data is bound to "other"`, "namespace default map[team:b]")
}

// A change that may let a waiting pod be planned for publishes an event; what the kube-scheduler does with a pod that
// has its node does not.
func TestStorageIsNewsForThoseWhoWait(t *testing.T) {
	t.Parallel()
	claim := func(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := volumeClaimFor("data", "")
		for _, do := range change {
			do(c)
		}
		return c
	}
	selected := func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n"}
	}
	bound := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }
	resized := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	}
	touched := func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }
	type put struct {
		resource string
		object   runtime.Object
	}
	claimIs := func(change ...func(*corev1.PersistentVolumeClaim)) put {
		return put{"persistentvolumeclaims", claim(change...)}
	}
	tests := []struct {
		reason string
		before []put
		change put
		news   bool
	}{
		{reason: "a claim comes that a pod mounts", change: claimIs(), news: true},
		{reason: "a claim comes that nobody mounts", change: put{"persistentvolumeclaims", volumeClaimFor("other", "")}, news: false},
		{reason: "a claim is bound by itself", before: []put{claimIs()}, change: claimIs(bound), news: true},
		{reason: "a claim changes", before: []put{claimIs()}, change: claimIs(resized), news: true},
		{reason: "a claim's labels change", before: []put{claimIs()}, change: claimIs(touched), news: false},
		{reason: "the kube-scheduler chooses a node", before: []put{claimIs()}, change: claimIs(selected), news: false},
		{reason: "the volume for that node is there", before: []put{claimIs(selected)}, change: claimIs(selected, bound), news: false},
		{reason: "the choice is taken back", before: []put{claimIs(selected)}, change: claimIs(), news: true},
		{reason: "a free volume comes", before: []put{claimIs()}, change: put{"persistentvolumes", persistentVolume("pv", "")}, news: true},
		{reason: "a volume of the claim comes", before: []put{claimIs(bound)}, change: put{"persistentvolumes", persistentVolume("pv", "data")}, news: true},
		{reason: "a volume of another claim comes", before: []put{claimIs()}, change: put{"persistentvolumes", persistentVolume("pv", "other")}, news: false},
		{reason: "a volume is made for the chosen node", before: []put{claimIs(selected)},
			change: put{"persistentvolumes", persistentVolume("pv", "data")}, news: false},
		{reason: "a StorageClass comes", before: []put{claimIs()}, change: put{"storageclasses", delayedClass("fast", "x")}, news: true},
		{reason: "a StorageClass stays as it is", before: []put{claimIs(), {"storageclasses", delayedClass("fast", "x")}},
			change: put{"storageclasses", delayedClass("fast", "x")}, news: false},
		{reason: "a node tells its limits", before: []put{claimIs()}, change: put{"csinodes", attachLimit("n", 3)}, news: false},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			m := feedable(t, clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)))
			do := func(what put) {
				if err := storeOf(m, what.resource).Update(what.object); err != nil {
					t.Fatal(err)
				}
			}
			pod := testPod("p", "", unschedulable)
			pod.Spec.Volumes = []corev1.Volume{claimVolume("data")}
			if err := m.pods.feed.Update(pod); err != nil {
				t.Fatal(err)
			}
			for _, before := range test.before {
				do(before)
			}
			subscription := m.Subscribe(StorageChanged)
			defer subscription.Close()
			before := m.Snapshot()
			do(test.change)
			if got := len(subscription.Take()) > 0; got != test.news {
				t.Errorf("told: %v, want %v", got, test.news)
			}
			if test.news && cmp.Equal(contents(before), contents(m.Snapshot())) && test.reason != "a claim changes" && test.reason != "the choice is taken back" {
				t.Error("the snapshot does not show the change")
			}
			bind := testPod("p", "n")
			if err := m.pods.feed.Update(bind); err != nil {
				t.Fatal(err)
			}
			do(put{"storageclasses", delayedClass(fmt.Sprint("late-", test.reason), "x")})
			if len(subscription.Take()) > 0 {
				t.Error("told, though no pod waits")
			}
		})
	}
}
