package admission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	all := judges(t)
	for _, tc := range []struct {
		reason, kind, base, patch string
		// want is the part of the object that is expected, as a merge patch that changes nothing.
		want string
	}{
		{
			"a pool that says nothing about disruption", "NodePool", minimalNodePool, "",
			`{spec: {disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized, budgets: [{nodes: 10%}]}, template: {spec: {expireAfter: 720h}}}}`,
		},
		{
			"a policy leaves the rest at its defaults", "NodePool", minimalNodePool, set("spec.disruption.consolidationPolicy", "WhenEmpty"),
			`{spec: {disruption: {consolidateAfter: 0s, consolidationPolicy: WhenEmpty, budgets: [{nodes: 10%}]}}}`,
		},
		{
			"no budgets are none, not the default", "NodePool", minimalNodePool, set("spec.disruption.budgets", "[]"),
			`{spec: {disruption: {budgets: []}}}`,
		},
		{
			"a budget of no number is a tenth", "NodePool", minimalNodePool, set("spec.disruption.budgets", "[{reasons: [Empty]}]"),
			`{spec: {disruption: {budgets: [{reasons: [Empty], nodes: 10%}]}}}`,
		},
		{
			"a static pool", "NodePool", minimalNodePool, set("spec", `{replicas: 3, limits: {nodes: "5"}}`),
			`{spec: {replicas: 3}}`,
		},
		{"a claim made by hand", "NodeClaim", minimalNodeClaim, "", `{spec: {expireAfter: 720h}}`},
		{
			"metadata is guarded", "EC2NodeClass", minimalEC2NodeClass, "",
			`{spec: {metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}}}`,
		},
		{
			"part of the metadata options", "EC2NodeClass", minimalEC2NodeClass, set("spec.metadataOptions.httpPutResponseHopLimit", "2"),
			`{spec: {metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}}}`,
		},
		{
			"an image of one's own", "EC2NodeClass", minimalEC2NodeClass,
			set("spec", `{amiFamily: Custom, amiSelectorTerms: [{tags: {team: web}}, {id: ami-1}, {name: a-*, owner: self}, {ssmParameter: /a}]}`), `{}`,
		},
		{
			"a buffer keeps nodes running", "CapacityBuffer", minimalCapacityBuffer, "",
			`{spec: {provisioningStrategy: buffer.x-k8s.io/active-capacity}}`,
		},
		{
			"a buffer of a Deployment, of as much as fits its limits", "CapacityBuffer", minimalCapacityBuffer,
			set("spec", `{podTemplateRef: null, replicas: null, scalableRef: {apiGroup: apps, kind: Deployment, name: web}, limits: {cpu: "8", memory: 1}}`), `{}`,
		},
		{
			"an overlay of everything", "NodeOverlay", minimalNodeOverlay,
			set("spec", `{priceAdjustment: null, price: "0.25", weight: 10000, capacity: {smarter-devices/fuse: 1}, requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}]}`), `{}`,
		},
		{"a price in either direction", "NodeOverlay", minimalNodeOverlay, set("spec.priceAdjustment", `"+.5"`), `{}`},
		{"the family of the alias, written down", "EC2NodeClass", minimalEC2NodeClass, set("spec.amiFamily", "AL2023"), `{}`},
	} {
		object := patched(t, tc.base, tc.patch)
		if errs := all[tc.kind].admit(object, nil); len(errs) > 0 {
			t.Errorf("%s: refused: %v", tc.reason, errs.ToAggregate())
			continue
		}
		document, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(patched(t, string(document), tc.want), object); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
		}
	}
}

// TestManifestsAreAccepted holds that the examples in deploy and the manifests that use every field are accepted.
func TestManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	all := judges(t)
	seen := map[string]int{}
	for _, object := range manifests(t) {
		j := all[object.GetKind()]
		if j == nil {
			continue
		}
		seen[object.GetKind()]++
		if errs := j.admit(object.Object, nil); len(errs) > 0 {
			t.Errorf("%s %s: refused: %v", object.GetKind(), object.GetName(), errs.ToAggregate())
		}
	}
	for _, kind := range []string{"NodePool", "EC2NodeClass", "CapacityBuffer"} {
		if seen[kind] == 0 {
			t.Errorf("no manifest of kind %s was found", kind)
		}
	}
}

// TestGoTypesKeepManifests holds that the Go types know every field of an accepted manifest, and that what they write
// is accepted again and means the same.
func TestGoTypesKeepManifests(t *testing.T) {
	t.Parallel()
	all := judges(t)
	for _, object := range manifests(t) {
		var typed, again any
		switch object.GetKind() {
		case "NodePool":
			typed, again = &karpv1.NodePool{}, &karpv1.NodePool{}
		case "EC2NodeClass":
			typed, again = &awsv1.EC2NodeClass{}, &awsv1.EC2NodeClass{}
		case "CapacityBuffer":
			typed, again = &bufferv1.CapacityBuffer{}, &bufferv1.CapacityBuffer{}
		default:
			continue
		}
		j, name := all[object.GetKind()], object.GetKind()+" "+object.GetName()
		j.admit(object.Object, nil)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		written, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		if errs := j.admit(decode(t, written), nil); len(errs) > 0 {
			t.Errorf("%s: what Go writes is refused: %v", name, errs.ToAggregate())
		}
		if err := json.Unmarshal(written, again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(typed, again, cmpopts.IgnoreTypes(metav1.TypeMeta{})); diff != "" {
			t.Errorf("%s: (-read +read again)\n%s", name, diff)
		}
	}
}

// manifests returns the objects in the examples and in the manifests with every field.
func manifests(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for _, pattern := range []string{"../../deploy/examples/*.yaml", "../../deploy/examples/*/*.yaml", "../*/v1/testdata/hash/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("nothing found at %s: %v", pattern, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data = []byte(strings.ReplaceAll(string(data), "${CLUSTER_NAME}", "dev"))
			for _, document := range strings.Split(string(data), "\n---\n") {
				converted, err := yaml.YAMLToJSON([]byte(document))
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				var object map[string]any
				if err := utiljson.Unmarshal(converted, &object); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				if object != nil {
					objects = append(objects, unstructured.Unstructured{Object: object})
				}
			}
		}
	}
	return objects
}
