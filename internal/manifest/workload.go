package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels that controllers put on pods and that constraints select by (spread and affinity name them in matchLabelKeys).
const (
	templateHashLabel = appsv1.DefaultDeploymentUniqueLabelKey
	revisionHashLabel = appsv1.ControllerRevisionHashLabelKey
)

// workload is an object that creates pods from one template.
type workload struct {
	place place
	// kind is the kind of the controller that pods name. For a Deployment that would be a ReplicaSet, but it does not exist
	// yet.
	kind string
	// want is the number of pods that there should be.
	want     int
	template *corev1.PodTemplateSpec
	// path is the path of the template's spec in the object.
	path string
	// labels are those the controller adds, to all pods alike.
	labels map[string]string
	// each adds what differs from pod to pod, by number; nil if nothing does.
	each func(pod *corev1.Pod, number int)
	// first is the number of the first pod.
	first int
}

// owner names a controller.
type owner struct{ kind, namespace, name string }

// workloads lists the objects that create pods.
func workloads(objects []object) ([]*workload, []string, mistakes) {
	var all []*workload
	var notes []string
	var wrong mistakes
	for i := range objects {
		o := &objects[i]
		w, note, mistake := workloadOf(o)
		if mistake != nil {
			wrong = append(wrong, mistake)
			continue
		}
		if note != "" {
			notes = append(notes, note)
		}
		if w != nil {
			all = append(all, w)
		}
	}
	return all, notes, wrong
}

func workloadOf(o *object) (*workload, string, *mistake) {
	at := o.place
	w := &workload{place: at, kind: at.kind, path: "spec.template.spec"}
	var selector *metav1.LabelSelector
	var replicas *int32
	note := ""
	switch v := o.value.(type) {
	case *appsv1.Deployment:
		w.template, selector, replicas = &v.Spec.Template, v.Spec.Selector, v.Spec.Replicas
		w.labels = map[string]string{templateHashLabel: hashOf(w.template)}
	case *appsv1.ReplicaSet:
		w.template, selector, replicas = &v.Spec.Template, v.Spec.Selector, v.Spec.Replicas
	case *corev1.ReplicationController:
		if v.Spec.Template == nil {
			return nil, "", &mistake{place: at, field: "spec.template", problem: "is missing: say what the pods are to be"}
		}
		w.template, replicas = v.Spec.Template, v.Spec.Replicas
		selector = &metav1.LabelSelector{MatchLabels: v.Spec.Selector}
		if len(v.Spec.Selector) == 0 {
			selector.MatchLabels = w.template.Labels
		}
	case *appsv1.StatefulSet:
		w.template, selector, replicas = &v.Spec.Template, v.Spec.Selector, v.Spec.Replicas
		w.labels = map[string]string{revisionHashLabel: hashOf(w.template)}
		w.each = ordinal(v)
		if v.Spec.Ordinals != nil {
			w.first = int(v.Spec.Ordinals.Start)
		}
	case *batchv1.Job:
		return jobOf(w, &v.Spec, v.Status.Succeeded)
	case *batchv1.CronJob:
		w.path = "spec.jobTemplate.spec.template.spec"
		job, _, err := jobOf(w, &v.Spec.JobTemplate.Spec, 0)
		return job, fmt.Sprintf("CronJob %s: one run of it is planned", at.key()), err
	default:
		return nil, "", nil
	}
	w.want = 1
	if replicas != nil {
		w.want = int(*replicas)
	}
	if w.want < 0 {
		return nil, "", &mistake{place: at, field: "spec.replicas", problem: fmt.Sprintf("%d is negative: write how many pods there are to be", w.want)}
	}
	if problem := selects(selector, w.template.Labels); problem != "" {
		return nil, "", &mistake{place: at, field: "spec.selector", problem: problem}
	}
	return w, note, nil
}

// selects returns why a workload's selector does not select its own pods.
func selects(selector *metav1.LabelSelector, labels map[string]string) string {
	if selector == nil {
		return "is missing: repeat the labels of spec.template.metadata.labels in matchLabels"
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil:
		return err.Error()
	case s.Empty():
		return "is empty: repeat the labels of spec.template.metadata.labels in matchLabels"
	case !s.Matches(labelSet(labels)):
		return fmt.Sprintf("%q does not match spec.template.metadata.labels: make them agree", s)
	}
	return ""
}

// labelSet lets a selector read labels.
type labelSet map[string]string

func (s labelSet) Has(key string) bool              { _, ok := s[key]; return ok }
func (s labelSet) Get(key string) string            { return s[key] }
func (s labelSet) Lookup(key string) (string, bool) { value, ok := s[key]; return value, ok }

// jobOf makes a workload of a Job. It wants as many pods as may run in parallel, but no more than are left to complete.
func jobOf(w *workload, spec *batchv1.JobSpec, succeeded int32) (*workload, string, *mistake) {
	w.template = &spec.Template
	w.labels = map[string]string{batchv1.JobNameLabel: w.place.name, "job-name": w.place.name}
	parallel := int32(1)
	if spec.Parallelism != nil {
		parallel = *spec.Parallelism
	}
	if spec.Completions != nil {
		parallel = min(parallel, max(0, *spec.Completions-succeeded))
	}
	if parallel < 0 {
		return nil, "", &mistake{place: w.place, field: "spec.parallelism", problem: fmt.Sprintf("%d is negative: write how many pods run at once", parallel)}
	}
	if spec.Suspend != nil && *spec.Suspend {
		return nil, fmt.Sprintf("%s %s is suspended: none of its pods are planned", w.kind, w.place.key()), nil
	}
	w.want = int(parallel)
	if spec.CompletionMode != nil && *spec.CompletionMode == batchv1.IndexedCompletion {
		w.each = func(pod *corev1.Pod, number int) {
			pod.Labels[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(number)
		}
	}
	return w, "", nil
}

// ordinal returns a function that gives a pod of a StatefulSet its own labels and volumes.
func ordinal(set *appsv1.StatefulSet) func(*corev1.Pod, int) {
	return func(pod *corev1.Pod, number int) {
		pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
		pod.Labels[appsv1.PodIndexLabel] = fmt.Sprint(number)
		for t := range set.Spec.VolumeClaimTemplates {
			name := set.Spec.VolumeClaimTemplates[t].Name
			source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + pod.Name}}
			volume := corev1.Volume{Name: name, VolumeSource: source}
			// A claim template replaces a volume of the same name.
			pod.Spec.Volumes = append(slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool { return v.Name == name }), volume)
		}
	}
}

// claimsOf returns the volume claims that a StatefulSet creates for its pods.
func claimsOf(set *appsv1.StatefulSet, namespace string, pods []string) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for t := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[t]
		for _, pod := range pods {
			claim := template.DeepCopy()
			claim.Namespace, claim.Name = namespace, template.Name+"-"+pod
			claim.UID = types.UID("PersistentVolumeClaim/" + namespace + "/" + claim.Name)
			claims = append(claims, claim)
		}
	}
	return claims
}

// model returns a pod with everything that all pods of the workload have in common.
func (w *workload) model(a *admission) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *w.template.ObjectMeta.DeepCopy(), Spec: *w.template.Spec.DeepCopy()}
	pod.Namespace = w.place.namespace
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	for key, value := range w.labels {
		pod.Labels[key] = value
	}
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: w.kind, Name: w.place.name, Controller: &controller}}
	a.admit(pod)
	pending(pod)
	return pod
}

// alike reports whether the workload's pods differ only in their names.
func (w *workload) alike() bool {
	ephemeral := slices.ContainsFunc(w.template.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
	return w.each == nil && !ephemeral // the claim of an ephemeral volume is named after its pod
}

// name is the name of the pod with a number.
func (w *workload) name(number int) string { return w.place.name + "-" + strconv.Itoa(number) }

// uid returns a UID that is the same for the same pod of the same manifests.
func (w *workload) uid(number int) types.UID {
	digits := strconv.Itoa(number)
	return types.UID(w.kind + "/" + w.place.namespace + "/" + w.place.name + "/" + "00000000"[:max(0, 8-len(digits))] + digits)
}

// pending marks a pod as the kube-scheduler marks a pod that fits no node.
func pending(pod *corev1.Pod) {
	pod.Spec.NodeName = ""
	pod.Status.Phase, pod.Status.NominatedNodeName = corev1.PodPending, ""
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

// hashOf returns a substitute for the hash with which controllers label the pods of one version of a template.
func hashOf(template *corev1.PodTemplateSpec) string {
	data, err := json.Marshal(template)
	if err != nil {
		return "" // cannot happen: the template was read from JSON
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:5])
}
