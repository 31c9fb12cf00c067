package convert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/manifest"
)

const (
	// compatibilityDomain precedes the group in the annotations in which Karpenter 1.0 kept what it converted.
	compatibilityDomain = "compatibility."
	// provisionerLabel was on every node.
	provisionerLabel = karpv1.Group + "/provisioner-name"
	// kubeletAnnotation has, on a pool of Karpenter 1.0, the kubelet settings of v1beta1.
	kubeletAnnotation = compatibilityDomain + karpv1.Group + "/v1beta1-kubelet-conversion"
)

// oldNames are labels and annotations that have another name in v1, or none, with what to do about them.
var oldNames = map[string]string{
	provisionerLabel:                     "no node carries this label in v1: write " + karpv1.NodePoolLabelKey,
	karpv1.DoNotEvictAnnotationKey:       "Tenon honours it on pods as before; its name since v1beta1 is " + karpv1.DoNotDisruptAnnotationKey,
	karpv1.DoNotConsolidateAnnotationKey: "Tenon honours it on nodes as before; its name since v1beta1 is " + karpv1.DoNotDisruptAnnotationKey,
	awsv1.Group + "/instance-pods":       "v1 has no label for how many pods an instance takes: remove it",
	awsv1.Group + "/instance-ami-id":     "v1 has no label for the image of a node: remove it",
	kubeletAnnotation:                    "only Karpenter 1.0 reads it: write its settings into spec.kubelet of the EC2NodeClass and remove it",
}

// oldNames notes the old names that a document of another kind uses, as a key or as a value.
func (o *object) oldNames() {
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				at := strings.TrimPrefix(path+"."+key, ".")
				if strings.Contains(key, "/") {
					at = fmt.Sprintf("%s[%s]", path, key)
				}
				if advice, old := oldNames[key]; old {
					o.changed(at, "%s", advice)
				}
				walk(at, v[key])
			}
		case []any:
			for i, item := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		case string:
			if advice, old := oldNames[v]; old {
				o.changed(path, "%s: %s", v, advice)
			}
		}
	}
	walk("", any(o.raw))
}

// decode decodes an object strictly, and notes unknown fields.
func (o *object) decode(into any) bool {
	unknown, err := manifest.Decode(o.document.JSON, into)
	if problem := (*manifest.FieldError)(nil); errors.As(err, &problem) {
		o.fail(problem.Field, "%s", problem.Text)
		return false
	}
	for _, problem := range unknown {
		if problem.Field != "metadata.clusterName" { // API servers before 1.24 had it
			o.lost(problem.Field, "%s", problem.Text)
		}
	}
	return true
}

// obsolete are annotations in which a controller kept something for itself.
var obsolete = []string{
	corev1.LastAppliedConfigAnnotation,
	karpv1.Group + "/provisioner-hash", karpv1.NodePoolHashAnnotationKey, karpv1.NodePoolHashVersionAnnotationKey,
	awsv1.Group + "/nodetemplate-hash", awsv1.Group + "/ec2nodeclass-hash", awsv1.Group + "/ec2nodeclass-hash-version",
	karpv1.Group + "/emptiness-timestamp", karpv1.Group + "/linked", karpv1.Group + "/managed-by", karpv1.Group + "/stored-version-migrated",
}

// isObsolete reports whether an annotation is no longer of use.
func isObsolete(key string) bool {
	return slices.Contains(obsolete, key) || strings.HasPrefix(key, compatibilityDomain+karpv1.Group+"/") || strings.HasPrefix(key, compatibilityDomain+awsv1.Group+"/")
}

// metadata returns what a person has written of an object's metadata.
func (o *object) metadata(old *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Name: old.Name, GenerateName: old.GenerateName, Labels: old.Labels, OwnerReferences: old.OwnerReferences}
	for key, value := range old.Annotations {
		if !isObsolete(key) {
			metav1.SetMetaDataAnnotation(&kept, key, value)
		}
	}
	for _, finalizer := range old.Finalizers {
		if !strings.HasPrefix(finalizer, karpv1.Group+"/") && !strings.HasPrefix(finalizer, awsv1.Group+"/") {
			kept.Finalizers = append(kept.Finalizers, finalizer)
		}
	}
	return kept
}

// annotation returns an annotation of the old object.
func (o *object) annotation(key string) string {
	var old metav1.PartialObjectMetadata
	if _, err := manifest.Decode(o.document.JSON, &old); err != nil {
		return ""
	}
	return old.Annotations[key]
}

// annotations returns the annotations of a template under the names that they have in v1.
func (o *object) annotations(field string, old map[string]string) map[string]string {
	if old == nil {
		return nil
	}
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		at := fmt.Sprintf("%s[%s]", field, key)
		switch {
		case isObsolete(key):
			o.lost(at, "a controller wrote it, for itself: remove it")
		case key != karpv1.DoNotEvictAnnotationKey && key != karpv1.DoNotConsolidateAnnotationKey:
			kept[key] = old[key]
		case old[key] != "true":
			o.lost(at, "it has no effect with the value %q: remove it", old[key])
		default:
			o.changed(at, "is now %s, which keeps the pool's nodes from drift and graceful expiry too", karpv1.DoNotDisruptAnnotationKey)
			if old[karpv1.DoNotDisruptAnnotationKey] == "" {
				kept[karpv1.DoNotDisruptAnnotationKey] = "true"
			}
		}
	}
	return kept
}
