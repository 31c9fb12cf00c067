package activities

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestClaimsAreReadInPages checks that no more claims are in memory together than fit on one page.
func TestClaimsAreReadInPages(t *testing.T) {
	t.Parallel()
	const count = 2*claimsAtOnce + 1
	stored := make([]karpv1.NodeClaim, count)
	for i := range stored {
		stored[i] = karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claim-%04d", i), Labels: map[string]string{"odd": strconv.Itoa(i % 2)}}}
	}
	for name, test := range map[string]struct {
		reason string
		labels client.MatchingLabels
		want   int
	}{
		"all":       {reason: "pages follow each other", want: count},
		"by labels": {reason: "each page asks for the labels", labels: client.MatchingLabels{"odd": "1"}, want: claimsAtOnce},
		"no such":   {reason: "an empty page is the last", labels: client.MatchingLabels{"odd": "2"}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The fake API server of controller-runtime has no pages.
			api := fake.NewClientBuilder().WithScheme(testScheme(t)).WithInterceptorFuncs(interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					asked, list := (&client.ListOptions{}).ApplyOptions(options), into.(*karpv1.NodeClaimList)
					all := slices.DeleteFunc(slices.Clone(stored), func(c karpv1.NodeClaim) bool {
						return asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(c.Labels))
					})
					from, _ := strconv.Atoi(asked.Continue)
					until := len(all)
					if asked.Limit > 0 && from+int(asked.Limit) < until {
						until = from + int(asked.Limit)
						list.Continue = strconv.Itoa(until)
					}
					if list.Items = all[from:until]; len(list.Items) > claimsAtOnce {
						t.Errorf("%s: %d claims at once, want at most %d", test.reason, len(list.Items), claimsAtOnce)
					}
					return nil
				}}).Build()
			seen := map[string]bool{}
			if err := (objects{api}).eachClaim(t.Context(), test.labels, func(c *karpv1.NodeClaim) { seen[c.Name] = true }); err != nil {
				t.Fatal(err)
			}
			if len(seen) != test.want {
				t.Errorf("%s: %d claims were visited, want %d", test.reason, len(seen), test.want)
			}
		})
	}
}
