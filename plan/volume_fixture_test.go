package plan_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

const (
	ebs     = "ebs.csi.aws.com"
	ebsZone = "topology.ebs.csi.aws.com/zone"
)

// storageOf reduces PersistentVolumeClaims, PersistentVolumes and StorageClasses.
func storageOf(in *plan.Interner, objects ...metav1.Object) plan.Storage {
	s := plan.Storage{Claims: map[string]*plan.VolumeClaim{}, Volumes: map[string]*plan.Volume{}, Classes: map[string]*plan.StorageClass{}}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.PersistentVolumeClaim:
			s.Claims[o.Namespace+"/"+o.Name] = in.VolumeClaim(o)
		case *corev1.PersistentVolume:
			s.Volumes[o.Name] = in.Volume(o)
		case *storagev1.StorageClass:
			s.Classes[o.Name] = in.StorageClass(o)
		default:
			panic(fmt.Sprintf("%T is no storage", object))
		}
	}
	return s
}

// mounts adds persistent volume claims to a pod.
func mounts(claims ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, claim := range claims {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v" + claim, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		}
	}
}

// scratch adds a generic ephemeral volume of that name and class to a pod.
func scratch(name, class string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				Spec: claimOf("x", ofClass(class)).Spec}}}})
	}
}

// claimOf makes an unbound claim of the class "fast" for 10Gi.
func claimOf(name string, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "fast"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-claim-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	for _, option := range options {
		option(claim)
	}
	return claim
}

func ofClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &name }
}

func ofNoClass(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }

func inMode(mode corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
	}
}

func boundTo(volume string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName, claim.Status.Phase = volume, corev1.ClaimBound
	}
}

// volumeOf makes an EBS volume of 10Gi that is bound to no claim.
func volumeOf(name string, options ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:       "fast",
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: ebs, VolumeHandle: "vol-" + name}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable},
	}
	for _, option := range options {
		option(volume)
	}
	return volume
}

// claimed binds a volume to a claim of the namespace default.
func claimed(claim string) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
		volume.Status.Phase = corev1.VolumeBound
	}
}

// reachedBy adds an alternative to a volume's node affinity.
func reachedBy(key string, values ...string) func(*corev1.PersistentVolume) {
	return reached(corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values})
}

func reached(conditions ...corev1.NodeSelectorRequirement) func(*corev1.PersistentVolume) {
	return func(volume *corev1.PersistentVolume) {
		if volume.Spec.NodeAffinity == nil {
			volume.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}}
		}
		required := volume.Spec.NodeAffinity.Required
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: conditions})
	}
}

// classNamed makes a StorageClass of the EBS driver that waits for the first pod.
func classNamed(name string, options ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now)}, Provisioner: ebs, VolumeBindingMode: &wait}
	for _, option := range options {
		option(class)
	}
	return class
}

func bindsAtOnce(class *storagev1.StorageClass) { class.VolumeBindingMode = nil }

func isDefault(class *storagev1.StorageClass) {
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
}

func madeBy(provisioner string) func(*storagev1.StorageClass) {
	return func(class *storagev1.StorageClass) { class.Provisioner = provisioner }
}

// allowedIn adds an alternative to where a class's volumes are made.
func allowedIn(key string, values ...string) func(*storagev1.StorageClass) {
	return func(class *storagev1.StorageClass) {
		class.AllowedTopologies = append(class.AllowedTopologies, corev1.TopologySelectorTerm{
			MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}}})
	}
}

// attaches limits how many volumes a node's EBS driver attaches.
func attaches(limit int) func(*plan.Node) {
	return func(n *plan.Node) { n.AttachLimits = map[string]int{ebs: limit} }
}
