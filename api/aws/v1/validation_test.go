package v1_test

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	v1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func TestEC2NodeClassValidate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason              string
		change              func(*v1.EC2NodeClassSpec)
		wantField, wantText string
	}{
		{reason: "nothing to complain about", change: func(*v1.EC2NodeClassSpec) {}},
		{reason: "as much user data as EC2 takes", change: func(s *v1.EC2NodeClassSpec) { s.UserData = ptr.To(strings.Repeat("x", 16384)) }},
		{"one byte more", func(s *v1.EC2NodeClassSpec) { s.UserData = ptr.To(strings.Repeat("x", 16385)) }, "spec.userData", "at most 16384"},
		{"an alias without version", func(s *v1.EC2NodeClassSpec) { s.AMISelectorTerms = []v1.AMISelectorTerm{{Alias: "al2023"}} }, "spec.amiSelectorTerms[0].alias", "family@version"},
		{"an alias of no family", func(s *v1.EC2NodeClassSpec) { s.AMISelectorTerms = []v1.AMISelectorTerm{{Alias: "arch@latest"}} }, "spec.amiSelectorTerms[0].alias", "al2023"},
		{"a tag that says whose an instance is", func(s *v1.EC2NodeClassSpec) { s.Tags = map[string]string{"kubernetes.io/cluster/dev": "owned"} }, "spec.tags[kubernetes.io/cluster/dev]", "restricted"},
		{"the pool's tag", func(s *v1.EC2NodeClassSpec) { s.Tags = map[string]string{"karpenter.sh/nodepool": "x"} }, "spec.tags[karpenter.sh/nodepool]", "restricted"},
		{"a tag of AWS", func(s *v1.EC2NodeClassSpec) { s.Tags = map[string]string{"aws:x": "y"} }, "spec.tags[aws:x]", "reserved by AWS"},
		{"a value that is too long", func(s *v1.EC2NodeClassSpec) { s.Tags = map[string]string{"x": strings.Repeat("y", 257)} }, "spec.tags[x]", "256"},
		{"a reserve that is no quantity", func(s *v1.EC2NodeClassSpec) {
			s.Kubelet = &v1.KubeletConfiguration{KubeReserved: map[string]string{"cpu": "some"}}
		}, "spec.kubelet.kubeReserved[cpu]", "quantity"},
		{"a negative reserve", func(s *v1.EC2NodeClassSpec) {
			s.Kubelet = &v1.KubeletConfiguration{SystemReserved: map[string]string{"memory": "-1Gi"}}
		}, "spec.kubelet.systemReserved[memory]", "not negative"},
	} {
		class := readEC2NodeClass(t, "nodeclass-plain")
		tc.change(&class.Spec)
		errs := class.Validate()
		if tc.wantField == "" {
			if len(errs) > 0 {
				t.Errorf("%s: %v", tc.reason, errs.ToAggregate())
			}
			continue
		}
		if len(errs) != 1 || errs[0].Field != tc.wantField || !strings.Contains(errs[0].Error(), tc.wantText) {
			t.Errorf("%s: errors %v, want one about %s with %q", tc.reason, errs.ToAggregate(), tc.wantField, tc.wantText)
		}
	}
}

func TestAlias(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]v1.Alias{
		"al2@v20240807":      {Family: v1.AMIFamilyAL2, Version: "v20240807"},
		"al2023@latest":      {Family: v1.AMIFamilyAL2023, Version: "latest"},
		"bottlerocket@1.20":  {Family: v1.AMIFamilyBottlerocket, Version: "1.20"},
		"windows2022@latest": {Family: v1.AMIFamilyWindows2022, Version: "latest"},
	} {
		got, err := v1.ParseAlias(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: got %+v (%s), error %v", text, got, got, err)
		}
	}
	class := &v1.EC2NodeClass{Spec: v1.EC2NodeClassSpec{AMISelectorTerms: []v1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}}}
	if got := class.AMIFamily(); got != v1.AMIFamilyBottlerocket {
		t.Errorf("the alias implies family %s, want %s", got, v1.AMIFamilyBottlerocket)
	}
	class.Spec.AMIFamily = ptr.To(v1.AMIFamilyCustom)
	if got := class.AMIFamily(); got != v1.AMIFamilyCustom {
		t.Errorf("family %s, want the one that is written down", got)
	}
}
