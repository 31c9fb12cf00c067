package kwok

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Group is the API group of KWOKNodeClass, and the domain of the provider's labels.
const Group = "karpenter.kwok.sh"

// GroupVersion is the group and version of KWOKNodeClass.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// NodeClass is a KWOKNodeClass. Its definition is deploy/kwok/definition.yaml.
type NodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeClassSpec   `json:"spec,omitempty"`
	Status NodeClassStatus `json:"status,omitempty"`
}

// NodeClassSpec says how nodes are made.
type NodeClassSpec struct {
	// NodeRegistrationDelay is how long after its launch a node becomes Ready.
	NodeRegistrationDelay metav1.Duration `json:"nodeRegistrationDelay,omitempty"`
}

// NodeClassStatus says whether nodes can be launched.
type NodeClassStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NodeClassList is a list of KWOKNodeClasses.
type NodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeClass `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (c *NodeClass) DeepCopyObject() runtime.Object {
	out := *c
	c.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = nil
	for i := range c.Status.Conditions {
		out.Status.Conditions = append(out.Status.Conditions, *c.Status.Conditions[i].DeepCopy())
	}
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *NodeClassList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*NodeClass))
	}
	return &out
}

// Hash implements cloud.NodeClass. No change of a class makes its nodes drift.
func (c *NodeClass) Hash(string) (string, error) { return karpv1.Hash(struct{}{}) }

// Images implements cloud.NodeClass. There are none.
func (c *NodeClass) Images() []karpv1.Image { return nil }

// Selected implements cloud.NodeClass. A class selects nothing.
func (c *NodeClass) Selected() []string { return nil }

// StatusConditions implements cloud.NodeClass.
func (c *NodeClass) StatusConditions() *[]metav1.Condition { return &c.Status.Conditions }

// Condition implements cloud.NodeClass.
func (c *NodeClass) Condition(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(c.Status.Conditions, conditionType)
}

// IsTrue implements cloud.NodeClass.
func (c *NodeClass) IsTrue(conditionType string) bool {
	return meta.IsStatusConditionTrue(c.Status.Conditions, conditionType)
}

// Labels of instance types, as Karpenter's kwok provider has them.
const (
	labelSize   = Group + "/instance-size"
	labelFamily = Group + "/instance-family"
	labelCPU    = Group + "/instance-cpu"
	labelMemory = Group + "/instance-memory"
)

// Kind returns the description of KWOKNodeClass.
func Kind() cloud.Kind {
	return cloud.Kind{
		GroupVersionKind: GroupVersion.WithKind("KWOKNodeClass"),
		Resource:         "kwoknodeclasses",
		New:              func() cloud.NodeClass { return &NodeClass{} },
		AddToScheme:      addToScheme,
		Finalizer:        Group + "/termination",
		HashKey:          Group + "/kwoknodeclass-hash",
		HashVersionKey:   Group + "/kwoknodeclass-hash-version",
		HashVersion:      "v1",
		Labels:           cloud.LabelKeys{Family: labelFamily, OfType: []string{labelSize, labelFamily, labelCPU, labelMemory}},
	}
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("KWOKNodeClass"), &NodeClass{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("KWOKNodeClassList"), &NodeClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// registrationDelay returns the delay of a class, or an error if the class cannot be launched from.
func registrationDelay(operation string, class cloud.NodeClass) (time.Duration, error) {
	own, ok := class.(*NodeClass)
	if !ok {
		return 0, failed(cloud.Invalid, operation, fmt.Errorf("a node class is a %T", class))
	}
	if !own.IsTrue(karpv1.ConditionTypeReady) {
		return 0, failed(cloud.NodeClassNotReady, operation, errors.New("the class is not Ready"))
	}
	return own.Spec.NodeRegistrationDelay.Duration, nil
}
