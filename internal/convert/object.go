package convert

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// conversion is the state of one call of Convert.
type conversion struct {
	options  Options
	settings settings
	objects  []*object
}

// object is one document and what becomes of it: either raw, or a pool, or classes, or both.
type object struct {
	document manifest.Document
	gvk      schema.GroupVersionKind
	name     string
	// raw is passed through unchanged.
	raw     map[string]any
	pool    *karpv1.NodePool
	kubelet *kubelet // what the pool's kubelets are told
	// kubeletField is the old path of kubelet.
	kubeletField string
	// classes are one class and its copies.
	classes []*awsv1.EC2NodeClass
	// superfluous says that the document is read, and has no place in v1.
	superfluous bool
	notes       []Note
}

// head is what tells which kind of object a document is.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
		Namespace    string `json:"namespace"`
	} `json:"metadata"`
}

func read(doc manifest.Document) *object {
	o := &object{document: doc}
	var h head
	if _, err := manifest.Decode(doc.JSON, &h); err != nil || h.Kind == "" || h.APIVersion == "" {
		o.fail("", "it is not a Kubernetes object: write apiVersion, kind and metadata at the top")
		return o
	}
	gv, err := schema.ParseGroupVersion(h.APIVersion)
	if err != nil {
		o.fail("apiVersion", "%q is not a group and version", h.APIVersion)
		return o
	}
	o.gvk, o.name = gv.WithKind(h.Kind), cmp.Or(h.Metadata.Name, h.Metadata.GenerateName)
	if h.Metadata.Namespace != "" && !o.karpenters() {
		o.name = h.Metadata.Namespace + "/" + o.name
	}
	return o
}

// karpenters reports whether the object is of one of Karpenter's kinds.
func (o *object) karpenters() bool { return o.gvk.Group == karpv1.Group || o.gvk.Group == awsv1.Group }

func (o *object) note(effect Effect, field, format string, args ...any) {
	o.notes = append(o.notes, Note{Place: o.document.Place, Kind: o.gvk.Kind, Name: o.name, Field: field, Effect: effect, Text: fmt.Sprintf(format, args...)})
}

func (o *object) changed(field, format string, args ...any) { o.note(Changed, field, format, args...) }

func (o *object) lost(field, format string, args ...any) { o.note(Lost, field, format, args...) }

func (o *object) fail(field, format string, args ...any) { o.note(Failed, field, format, args...) }

func (o *object) leftOut(format string, args ...any) { o.note(Lost, "", format, args...) }

func (o *object) failed() bool {
	for i := range o.notes {
		if o.notes[i].Effect == Failed {
			return true
		}
	}
	return false
}
