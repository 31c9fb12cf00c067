package nodegroup

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/convert"
)

// proposal is a pool and a class in the making.
type proposal struct {
	source *Source
	group  *Group
	names  []string // of the groups
	notes  []convert.Note
	pool   *karpv1.NodePool
	class  *awsv1.EC2NodeClass
	// leftOut says that the group gives no manifests, for a reason that a note has.
	leftOut bool
	// maxSize is the group's maximum number of nodes.
	maxSize int64
}

// scaleDownAfter is how long the Cluster Autoscaler lets a node be unneeded before it removes it (--scale-down-unneeded-time).
const scaleDownAfter = "10m"

func newProposal(source Source, group *Group) *proposal {
	name := objectName(group.Name())
	p := &proposal{source: &source, group: group, names: []string{group.Name()}}
	p.class = &awsv1.EC2NodeClass{TypeMeta: metav1.TypeMeta{APIVersion: awsv1.SchemeGroupVersion.String(), Kind: "EC2NodeClass"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.pool = &karpv1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := &p.pool.Spec.Template.Spec
	spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: name}
	spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{}
	spec.ExpireAfter = mustDuration("Never") // nodes of a group have no age, and the default would be 30 days
	p.pool.Spec.Disruption = karpv1.Disruption{
		ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: mustDuration(scaleDownAfter),
	}
	return p
}

// maxName is how long the name of a pool may be: nodes carry it as the value of a label.
const maxName = 63

var notInNames = regexp.MustCompile(`[^a-z0-9-]+`)

// objectName makes a name for objects of a group's name, which may have capitals and underscores.
func objectName(group string) string {
	name := notInNames.ReplaceAllString(strings.ToLower(group), "-")
	return strings.Trim(name[:min(len(name), maxName)], "-")
}

// mustDuration returns a duration that is known to be one.
func mustDuration(text string) karpv1.NillableDuration {
	d, err := karpv1.ParseNillableDuration(text)
	if err != nil {
		panic(fmt.Sprintf("%q is no duration: %v", text, err))
	}
	return d
}

func (p *proposal) note(effect convert.Effect, field, format string, args ...any) {
	kind, place := p.group.kind()
	note := convert.Note{Place: place, Kind: kind, Name: p.group.Name(), Field: field, Effect: effect, Text: fmt.Sprintf(format, args...)}
	if !slices.Contains(p.notes, note) {
		p.notes = append(p.notes, note)
	}
}

func (p *proposal) changed(field, format string, args ...any) {
	p.note(convert.Changed, field, format, args...)
}

func (p *proposal) lost(field, format string, args ...any) {
	p.note(convert.Lost, field, format, args...)
}

func (p *proposal) fail(field, format string, args ...any) {
	p.note(convert.Failed, field, format, args...)
}

func (p *proposal) failed() bool {
	return slices.ContainsFunc(p.notes, func(n convert.Note) bool { return n.Effect == convert.Failed })
}

// require adds a requirement to the pool. Values of the same key and operator are merged.
func (p *proposal) require(key string, operator corev1.NodeSelectorOperator, values ...string) {
	all := &p.pool.Spec.Template.Spec.Requirements
	for i := range *all {
		if r := &(*all)[i]; r.Key == key && r.Operator == operator && (operator == corev1.NodeSelectorOpIn || operator == corev1.NodeSelectorOpNotIn) {
			for _, value := range values {
				if !slices.Contains(r.Values, value) {
					r.Values = append(r.Values, value)
				}
			}
			return
		}
	}
	*all = append(*all, karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: slices.Clone(values)})
}

// label gives the pool's nodes a label, unless Tenon refuses it or sets it by itself.
func (p *proposal) label(field, key, value string) {
	switch {
	case karpv1.WellKnownLabel(key):
		p.require(key, corev1.NodeSelectorOpIn, value)
		p.changed(field, "is now a requirement: every node has this label by itself")
	case strings.HasPrefix(key, "eks.amazonaws.com/"):
		p.lost(field, "%s", ofEKS)
	default:
		if err := karpv1.RestrictedLabel(key); err != nil {
			p.lost(field, "%v", err)
			return
		}
		if p.pool.Spec.Template.Labels == nil {
			p.pool.Spec.Template.Labels = map[string]string{}
		}
		p.pool.Spec.Template.Labels[key] = value
	}
}

// ofEKS is the note about the labels that EKS gives to the nodes of its groups.
const ofEKS = "EKS gives this label to the nodes of its own groups: have pods select karpenter.sh/nodepool or karpenter.sh/capacity-type instead"

// taint gives the pool's nodes a taint.
func (p *proposal) taint(taint corev1.Taint) {
	taints := &p.pool.Spec.Template.Spec.Taints
	if !slices.ContainsFunc(*taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		*taints = append(*taints, taint)
	}
}

// finish fails a proposal that Tenon would not use.
func (p *proposal) finish() {
	if p.leftOut {
		return
	}
	for _, err := range p.pool.Validate() {
		p.fail(err.Field, "of the NodePool would be refused: %s", err.ErrorBody())
	}
	for _, err := range p.class.Validate() {
		p.fail(err.Field, "of the EC2NodeClass would be refused: %s", err.ErrorBody())
	}
}

// manifests returns the objects as a person would write them: the class first, without a status or empty fields.
func (p *proposal) manifests() []map[string]any {
	if p.leftOut || p.failed() {
		return []map[string]any{}
	}
	return []map[string]any{convert.ManifestOf(p.class), convert.ManifestOf(p.pool)}
}

// fingerprint returns all that a proposal says but the names, the subnets and the limits.
func (p *proposal) fingerprint() string {
	class, pool := p.class.DeepCopy(), p.pool.DeepCopy()
	class.Name, pool.Name, pool.Spec.Template.Spec.NodeClassRef.Name = "", "", ""
	class.Spec.SubnetSelectorTerms, pool.Spec.Limits = nil, nil
	text, err := json.Marshal([]any{class, pool, slices.Sorted(maps.Keys(p.pool.Spec.Limits))})
	if err != nil {
		panic(fmt.Sprintf("a type of package api is not JSON: %v", err))
	}
	return string(text)
}
