package failpoint

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, name string
		want         point
		wrong        bool
	}{
		{reason: "the simplest form", name: "PATCH nodes before", want: point{effect: "PATCH nodes", moment: "before"}},
		{reason: "an activity's acknowledgement", name: "Join ack", want: point{effect: "Join", moment: "ack"}},
		{reason: "an answer that is an error", name: "EC2 CreateFleet refused", want: point{effect: "EC2 CreateFleet", moment: "refused"}},
		{reason: "all parts", name: "Evict: PATCH nodes{karpenter.sh/disrupted}#2 after",
			want: point{activity: "Evict", effect: "PATCH nodes", text: "karpenter.sh/disrupted", nth: 2, moment: "after"}},
		{reason: "a moment that does not exist would never strike", name: "PATCH nodes afterwards", wrong: true},
		{reason: "an occurrence is a number", name: "PATCH nodes#x before", wrong: true},
	} {
		got, err := parse(test.name)
		if test.wrong {
			if err == nil {
				t.Errorf("%s: %q was understood as %+v", test.reason, test.name, got)
			}
			continue
		}
		test.want.name = test.name
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(point{})); err != nil || diff != "" {
			t.Errorf("%s: %v %s", test.reason, err, diff)
		}
	}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, method, path, body, want string }{
		{reason: "a custom resource", method: http.MethodPost, path: "/apis/karpenter.sh/v1/nodeclaims", body: "", want: "POST nodeclaims"},
		{reason: "a subresource", method: http.MethodPatch, path: "/apis/karpenter.sh/v1/nodeclaims/a/status", body: "", want: "PATCH nodeclaims/status"},
		{reason: "a subresource in a namespace", method: http.MethodPost, path: "/api/v1/namespaces/n/pods/p/eviction", body: "", want: "POST pods/eviction"},
		{reason: "a Lease is renewed all the time", method: http.MethodPut,
			path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l", body: "", want: ""},
		{reason: "a call that changes something", method: http.MethodPost, path: "/", body: "Action=CreateFleet&Version=2016-11-15", want: "EC2 CreateFleet"},
		{reason: "a call that only reads", method: http.MethodPost, path: "/", body: "Action=DescribeInstances", want: ""},
		{reason: "a dry run changes nothing", method: http.MethodPost, path: "/", body: "Action=CreateFleet&DryRun=true", want: ""},
	} {
		request := httptest.NewRequest(test.method, test.path, strings.NewReader(test.body))
		name := kubernetesEffect
		if test.path == "/" {
			name = awsEffect
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		}
		body, err := peek(request)
		if err != nil {
			t.Fatal(err)
		}
		if got := name(request, body); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}
