// Package convert turns manifests of older versions of Karpenter into v1: Provisioners (v1alpha5) and AWSNodeTemplates
// (v1alpha1), and the v1beta1 versions of NodePools and EC2NodeClasses. It is pure: documents in, objects and notes out.
//
// # What is promised
//
// Nothing is lost in silence. Each field of an old document is carried over, or a Note names it: changed where the new
// field does not mean quite the same or is somewhere else, lost where v1 has nothing like it. Documents are decoded strictly,
// so that a misspelt field is lost by name. A document that would give something that the API server or Tenon refuses
// fails, with the field that has to change first. Only what API servers and controllers wrote for themselves, such as a status
// or a hash, goes without a word.
//
// The meaning is kept, rather than the text: what older versions left to their defaults is written out where v1 has
// another default. The rules are those of Karpenter's own converters, and api/admission compares the results with theirs.
// Three differ, because Karpenter's change what happens: consolidateAfter Never stays, where its webhook writes 0s; an
// Ubuntu class without images fails, where it gets an image that does not exist; and kubelet settings go where v1 looks for
// them, where they get an annotation that Karpenter 1.1 stopped to read.
//
// # Kubelet settings
//
// They were the pool's, and are the class's in v1. If all pools of a class agree, the class gets their settings. If not, it
// is copied once for each further configuration, under the class's name and that of the first pool that has it (kubelet.go).
//
// # Everything else
//
// Documents that are v1 already, and those of other kinds, are passed through as they are. Where they use names that no
// node carries any more, a note says so (names.go). NodeClaims of older versions and Machines are left out: a controller
// made them.
//
// Reading order: note, object, names, kubelet, nodeclass, nodepool, selectors, settings, nodetemplate, provisioner, convert.
package convert

import (
	"encoding/json"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tenon-sh/tenon/internal/manifest"
)

// Options are what manifests do not say.
type Options struct {
	// Role and InstanceProfile are what AWSNodeTemplates without an instanceProfile get. They relied on a setting of the
	// controller, which v1 does not have. At most one is set.
	Role, InstanceProfile string
}

// Result is what the conversion of some documents gives.
type Result struct {
	// Objects are the v1 manifests, in the order of the documents they come from.
	Objects []map[string]any `json:"objects"`
	// Notes are in the same order.
	Notes []Note `json:"notes"`
}

// Failures returns the notes about documents that were not converted.
func (r Result) Failures() []Note {
	return slices.DeleteFunc(slices.Clone(r.Notes), func(n Note) bool { return n.Effect != Failed })
}

// Convert converts documents together, since pools and classes depend on each other.
func Convert(docs []manifest.Document, options Options) Result {
	c := &conversion{options: options}
	for _, doc := range docs {
		if o := read(doc); o != nil {
			c.objects = append(c.objects, o)
		}
	}
	c.readSettings()
	for _, o := range c.objects {
		c.convert(o)
	}
	c.removeOlder()
	c.placeKubelets()
	result := Result{Objects: []map[string]any{}, Notes: []Note{}}
	for _, o := range c.objects {
		o.validate()
		if !o.failed() {
			result.Objects = append(result.Objects, o.manifests()...)
		}
		result.Notes = append(result.Notes, o.notes...)
	}
	return result
}

// convert converts an object by itself.
func (c *conversion) convert(o *object) {
	if o.failed() {
		return
	}
	if o.name == "" && o.karpenters() {
		o.fail("metadata.name", "is missing: give the object a name")
		return
	}
	if o.superfluous {
		o.leftOut("v1 does not read it")
		return
	}
	switch o.gvk {
	case provisionerKind:
		c.provisioner(o)
	case nodeTemplateKind:
		c.nodeTemplate(o)
	case nodePoolKind:
		o.nodePool()
	case nodeClassKind:
		o.nodeClass()
	case nodeClaimKind, machineKind:
		o.leftOut("a controller made it and removes it again, so it has no part in manifests")
	default:
		o.pass()
	}
}

// pass passes a document through unchanged.
func (o *object) pass() {
	if o.karpenters() && o.gvk.Version != "v1" && o.gvk.Kind != "NodeOverlay" {
		o.fail("apiVersion", "%s %s cannot be converted: this command reads v1alpha5 and v1beta1 of karpenter.sh, and v1alpha1 and v1beta1 of karpenter.k8s.aws",
			o.gvk.GroupVersion(), o.gvk.Kind)
		return
	}
	if err := utiljson.Unmarshal(o.document.JSON, &o.raw); err != nil {
		o.fail("", "%v", err)
		return
	}
	o.oldNames()
}

// validate fails an object whose result Tenon would not use.
func (o *object) validate() {
	if o.pool != nil {
		for _, err := range o.pool.Validate() {
			o.fail(err.Field, "of the v1 NodePool would be refused: %s", err.ErrorBody())
		}
	}
	for _, class := range o.classes {
		for _, err := range class.Validate() {
			o.fail(err.Field, "of the v1 EC2NodeClass would be refused: %s", err.ErrorBody())
		}
	}
}

// manifests returns what becomes of an object.
func (o *object) manifests() []map[string]any {
	var all []map[string]any
	if o.raw != nil {
		all = append(all, o.raw)
	}
	for _, class := range o.classes {
		all = append(all, ManifestOf(class))
	}
	if o.pool != nil {
		all = append(all, ManifestOf(o.pool))
	}
	return all
}

// ManifestOf returns an object as a person would write it: without a status, and without what the API server fills in.
func ManifestOf(typed any) map[string]any {
	var value map[string]any
	data, err := json.Marshal(typed)
	if err == nil {
		err = utiljson.Unmarshal(data, &value)
	}
	if err != nil {
		panic(fmt.Sprintf("a type of package api is not JSON: %v", err)) // its own marshallers never fail
	}
	delete(value, "status")
	if metadata, ok := value["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	return value
}

// version is a kind and version in which a name can occur once.
type version struct {
	kind, name string
}

// ranks order the versions of a kind by age.
var ranks = map[string]int{"v1alpha1": 1, "v1alpha5": 1, "v1beta1": 2, "v1": 3}

// removeOlder leaves out pools and classes that a newer document has as well: Karpenter 0.32 served two versions side by
// side, and people kept both while they moved. Two documents of the same version fail.
func (c *conversion) removeOlder() {
	newest := map[version]*object{}
	for _, o := range c.objects {
		for _, id := range o.ids() {
			other := newest[id]
			switch {
			case other == nil:
				newest[id] = o
			case ranks[other.gvk.Version] == ranks[o.gvk.Version]:
				o.fail("metadata.name", "%s %s comes from %s as well: remove one of them", id.kind, id.name, other.document.Place)
			case ranks[other.gvk.Version] > ranks[o.gvk.Version]:
				o.superseded(id, other)
			default:
				other.superseded(id, o)
				newest[id] = o
			}
		}
	}
}

func (o *object) superseded(id version, by *object) {
	if id.kind == "NodePool" {
		o.pool = nil
	} else {
		o.classes = nil
	}
	o.raw = nil
	o.leftOut("%s %s, which it would become, is there already: %s", id.kind, id.name, by.document.Place)
}

// ids returns the pools and classes that an object gives.
func (o *object) ids() []version {
	if o.failed() {
		return nil
	}
	var all []version
	for _, class := range o.classes {
		all = append(all, version{"EC2NodeClass", class.Name})
	}
	if o.pool != nil {
		all = append(all, version{"NodePool", o.pool.Name})
	}
	if o.raw != nil && o.karpenters() {
		all = append(all, version{o.gvk.Kind, o.name})
	}
	return all
}
