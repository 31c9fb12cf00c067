package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

func TestInstancesAreNamedAfterTheirNodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		tags   map[string]string
		want   map[string]string
	}{
		{reason: "a new instance is named", want: map[string]string{tagName: "ip-10-0-0-1", tagClaim: "a"}},
		{reason: "the name that its class has given it stays", tags: map[string]string{tagName: "web"}, want: map[string]string{tagClaim: "a"}},
		{reason: "one that has its names is left alone", tags: map[string]string{tagName: "web", tagClaim: "a"}},
	} {
		instance := sweptInstance("i-1", "g", old)
		instance.Tags = test.tags
		claim := sweptClaim("a", "g", instance.ProviderID, old)
		claim.Status.ProviderID, claim.Status.NodeName = instance.ProviderID, "ip-10-0-0-1"
		provider := &sweptCloud{}
		s := sweep{
			sweeper:   New(Config{Cluster: "c", Cloud: provider, Log: zap.NewNop()}).sweeper,
			instances: map[string]cloud.Instance{instance.ProviderID: instance},
			claims:    map[string]*karpv1.NodeClaim{instance.ProviderID: claim},
		}
		s.nameInstances(t.Context())
		if diff := cmp.Diff(test.want, provider.tagged["i-1"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}
