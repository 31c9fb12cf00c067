package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// kubelet are the settings of kubelets as v1beta1 has them.
type kubelet struct {
	ClusterDNS                  []string                   `json:"clusterDNS,omitempty"`
	MaxPods                     *int32                     `json:"maxPods,omitempty"`
	PodsPerCore                 *int32                     `json:"podsPerCore,omitempty"`
	SystemReserved              map[string]text            `json:"systemReserved,omitempty"`
	KubeReserved                map[string]text            `json:"kubeReserved,omitempty"`
	EvictionHard                map[string]text            `json:"evictionHard,omitempty"`
	EvictionSoft                map[string]text            `json:"evictionSoft,omitempty"`
	EvictionSoftGracePeriod     map[string]metav1.Duration `json:"evictionSoftGracePeriod,omitempty"`
	EvictionMaxPodGracePeriod   *int32                     `json:"evictionMaxPodGracePeriod,omitempty"`
	ImageGCHighThresholdPercent *int32                     `json:"imageGCHighThresholdPercent,omitempty"`
	ImageGCLowThresholdPercent  *int32                     `json:"imageGCLowThresholdPercent,omitempty"`
	CPUCFSQuota                 *bool                      `json:"cpuCFSQuota,omitempty"`
}

// alphaKubelet are the settings of v1alpha5.
type alphaKubelet struct {
	kubelet          `json:",inline"`
	ContainerRuntime *string `json:"containerRuntime,omitempty"`
}

// text is a quantity or a threshold. YAML may have it as a number, and v1 takes only strings.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("%s is neither a string nor a number: %w", data, err)
	}
	*t = text(n)
	return nil
}

// String returns the settings as JSON, by which they are compared.
func (k *kubelet) String() string {
	if k == nil {
		return "{}"
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// v1 returns the settings as v1 has them, which are named alike; nil if there are none.
func (k *kubelet) v1() *awsv1.KubeletConfiguration {
	if k.String() == "{}" {
		return nil
	}
	var settings awsv1.KubeletConfiguration
	if err := json.Unmarshal([]byte(k.String()), &settings); err != nil {
		panic(fmt.Sprintf("kubelet settings of v1beta1 are not those of v1: %v", err)) // the same types, except for text
	}
	return &settings
}

// classUse is a class and the pools that refer to it.
type classUse struct {
	object *object // of the class
	class  *awsv1.EC2NodeClass
	pools  []*object
	// fixed says that the class is v1 already, or that a pool of v1 uses it: it stays as it is.
	fixed bool
}

// placeKubelets moves the kubelet settings of pools to their classes.
func (c *conversion) placeKubelets() {
	uses, names := c.uses()
	taken := map[string]bool{}
	for name := range uses {
		taken[name] = true
	}
	for _, name := range names {
		uses[name].place(taken)
	}
	for _, o := range c.objects {
		if o.pool == nil || o.failed() || o.kubelet.v1() == nil {
			continue
		}
		ref := o.pool.Spec.Template.Spec.NodeClassRef
		switch use := uses[ref.Name]; {
		case ref.Group != awsv1.Group:
			o.lost(o.kubeletField, "it is a field of the class in v1, and this command does not know %s: set it there", ref.Kind)
		case use == nil:
			o.lost(o.kubeletField, "it is a field of the class in v1, and EC2NodeClass %s is not among the manifests: convert both together, or write there spec.kubelet: %s", ref.Name, o.kubelet)
		}
	}
}

// uses returns the classes by name, with the pools that refer to them, and the names in the order of the documents.
func (c *conversion) uses() (map[string]*classUse, []string) {
	uses, names := map[string]*classUse{}, []string(nil)
	for _, o := range c.objects {
		if o.failed() {
			continue
		}
		var found *classUse
		switch {
		case len(o.classes) > 0:
			found = &classUse{object: o, class: o.classes[0]}
		case o.raw != nil && o.gvk.Group == awsv1.Group && o.gvk.Kind == "EC2NodeClass":
			found = &classUse{object: o, class: &awsv1.EC2NodeClass{}, fixed: true}
			if json.Unmarshal(o.document.JSON, found.class) != nil {
				continue // passed through as it is, and the API server will say
			}
		default:
			continue
		}
		names = append(names, found.class.Name)
		uses[found.class.Name] = found
	}
	for _, o := range c.objects {
		ref, ours := o.refersTo()
		use := uses[ref]
		switch {
		case use == nil || o.failed():
		case ours:
			use.pools = append(use.pools, o)
		default:
			use.fixed = true
		}
	}
	return uses, names
}

// refersTo returns the name of the class that a pool refers to, and whether the pool is one that was converted.
func (o *object) refersTo() (name string, converted bool) {
	if o.pool != nil {
		if ref := o.pool.Spec.Template.Spec.NodeClassRef; ref.Group == awsv1.Group {
			return ref.Name, true
		}
		return "", true
	}
	if o.raw == nil || o.gvk.Group != karpv1.Group || o.gvk.Kind != "NodePool" {
		return "", false
	}
	var pool karpv1.NodePool
	if err := json.Unmarshal(o.document.JSON, &pool); err != nil || pool.Spec.Template.Spec.NodeClassRef == nil {
		return "", false
	}
	return pool.Spec.Template.Spec.NodeClassRef.Name, false
}

// place gives a class the settings of its pools. If they differ, pools without settings keep the class, or else those with
// the first ones; the others get a copy.
func (u *classUse) place(taken map[string]bool) {
	byText := map[string]*awsv1.EC2NodeClass{}
	if u.fixed {
		byText[settingsOf(u.class).String()] = u.class
	}
	for _, pool := range u.pools {
		if pool.kubelet.v1() == nil && !u.fixed {
			byText["{}"] = u.class
		}
	}
	for _, pool := range u.pools {
		settings := pool.kubelet.v1()
		if settings == nil {
			continue
		}
		key := pool.kubelet.String()
		if len(byText) == 0 {
			u.class.Spec.Kubelet = settings
			byText[key] = u.class
		}
		if byText[key] == nil {
			split := u.class.DeepCopy()
			split.Name, split.Spec.Kubelet = freeName(u.class.Name, pool.name, taken), settings
			maps.DeleteFunc(split.Annotations, func(key, _ string) bool { return isObsolete(key) })
			split.ObjectMeta = metav1.ObjectMeta{Name: split.Name, Labels: split.Labels, Annotations: split.Annotations}
			split.TypeMeta = metav1.TypeMeta{APIVersion: awsv1.SchemeGroupVersion.String(), Kind: "EC2NodeClass"}
			split.Status = awsv1.EC2NodeClassStatus{}
			byText[key] = split
			u.object.classes = append(u.object.classes, split)
		}
		class := byText[key]
		pool.pool.Spec.Template.Spec.NodeClassRef.Name = class.Name
		if class.Name == u.class.Name {
			pool.changed(pool.kubeletField, "is now spec.kubelet of EC2NodeClass %s", class.Name)
		} else {
			pool.changed(pool.kubeletField, "is now spec.kubelet of EC2NodeClass %s, a copy of %s, whose other pools have other settings", class.Name, u.class.Name)
		}
	}
}

// settingsOf returns the settings of a class as those of a pool, to compare them.
func settingsOf(class *awsv1.EC2NodeClass) *kubelet {
	var k kubelet
	data, err := json.Marshal(class.Spec.Kubelet)
	if err != nil || class.Spec.Kubelet == nil || json.Unmarshal(data, &k) != nil {
		return nil
	}
	return &k
}

// maxName is how long the name of a class may be: nodes carry it as the value of a label.
const maxName = 63

// freeName returns the name of a copy of a class for a pool, and takes it.
func freeName(class, pool string, taken map[string]bool) string {
	name := class + "-" + pool
	for n := 2; taken[name] || len(name) > maxName; n++ {
		end := fmt.Sprintf("-kubelet-%d", n)
		name = strings.TrimRight(class[:min(len(class), maxName-len(end))], "-.") + end
	}
	taken[name] = true
	return name
}
