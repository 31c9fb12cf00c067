package v1_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestEC2NodeClassHashIsKarpenters compares with the hashes that karpenter-provider-aws v1.14.1 gives the same
// manifests.
func TestEC2NodeClassHashIsKarpenters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, caBundle, want string }{
		{"nodeclass-plain", "", "1916286033464577223"},
		{"nodeclass-plain", "Y2E=", "11023285112627678816"},
		{"nodeclass-rich", "", "13984635413219927379"},
		{"nodeclass-rich", "Y2E=", "4643764587641366516"},
	} {
		got, err := readEC2NodeClass(t, tc.name).Hash(tc.caBundle)
		if err != nil {
			t.Fatal(err)
		}
		if got != tc.want {
			t.Errorf("%s with bundle %q: hash %s, want %s", tc.name, tc.caBundle, got, tc.want)
		}
	}
}

func TestEC2NodeClassHashChangesOnlyWithStaticFields(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		change func(*v1.EC2NodeClassSpec)
		same   bool
	}{
		{"subnets are compared by what is selected", func(s *v1.EC2NodeClassSpec) { s.SubnetSelectorTerms = nil }, true},
		{"images are compared by what is selected", func(s *v1.EC2NodeClassSpec) { s.AMISelectorTerms[0].Alias = "al2023@v20250101" }, true},
		{"writing down the family the alias implies", func(s *v1.EC2NodeClassSpec) { s.AMIFamily = ptr.To(v1.AMIFamilyAL2023) }, true},
		{"another family", func(s *v1.EC2NodeClassSpec) { s.AMIFamily = ptr.To(v1.AMIFamilyCustom) }, false},
		{"another role", func(s *v1.EC2NodeClassSpec) { s.Role = "other" }, false},
		{"a tag", func(s *v1.EC2NodeClassSpec) { s.Tags = map[string]string{"a": "b"} }, false},
		{"kubelet", func(s *v1.EC2NodeClassSpec) { s.Kubelet = &v1.KubeletConfiguration{MaxPods: ptr.To[int32](20)} }, false},
		{"metadata options", func(s *v1.EC2NodeClassSpec) { s.MetadataOptions.HTTPTokens = ptr.To("optional") }, false},
	} {
		class := readEC2NodeClass(t, "nodeclass-plain")
		before, err := class.Hash("")
		if err != nil {
			t.Fatal(err)
		}
		tc.change(&class.Spec)
		after, err := class.Hash("")
		if err != nil {
			t.Fatal(err)
		}
		if same := before == after; same != tc.same {
			t.Errorf("%s: hash unchanged is %t, want %t", tc.reason, same, tc.same)
		}
	}
}

func readEC2NodeClass(t *testing.T, name string) *v1.EC2NodeClass {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hash", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var class v1.EC2NodeClass
	if err := yaml.UnmarshalStrict(data, &class); err != nil {
		t.Fatal(err)
	}
	return &class
}
