package ec2sim_test

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestRequestsAreToldApart sends requests that SDKs do not send: without a signature, and of unknown services and
// actions.
func TestRequestsAreToldApart(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	scope := func(service string) http.Header {
		return http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/" + service + "/aws4_request, SignedHeaders=host, Signature=00"}}
	}
	target := scope("ssm")
	target.Set("X-Amz-Target", "AmazonSSM.PutParameter")
	for reason, tc := range map[string]struct {
		header http.Header
		form   url.Values
		status int
		want   string
	}{
		"no signature": {header: http.Header{}, form: url.Values{"Action": {"DescribeVpcs"}}, status: http.StatusForbidden,
			want: "<Code>MissingAuthenticationToken</Code>"},
		"an unknown service": {header: scope("s3"), form: url.Values{"Action": {"DescribeVpcs"}}, status: http.StatusBadRequest,
			want: "<Code>InvalidAction</Code>"},
		"an unknown action": {header: scope("ec2"), form: url.Values{"Action": {"RebootInstances"}}, status: http.StatusBadRequest,
			want: "<Response><Errors><Error><Code>InvalidAction</Code>"},
		"an unknown operation": {header: target, status: http.StatusBadRequest, want: `"__type":"InvalidAction"`},
		"EC2's success": {header: scope("ec2"), form: url.Values{"Action": {"DescribeVpcs"}}, status: http.StatusOK,
			want: `<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>`},
		"STS's success": {header: scope("sts"), form: url.Values{"Action": {"GetCallerIdentity"}}, status: http.StatusOK, want: "<GetCallerIdentityResult>"},
	} {
		req, err := http.NewRequestWithContext(ctx(t), http.MethodPost, a.sim.URL(), strings.NewReader(tc.form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = tc.header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != tc.status || !bytes.Contains(body, []byte(tc.want)) {
			t.Errorf("%s: status %d, want %d; body, which should contain %s:\n%s", reason, resp.StatusCode, tc.status, tc.want, body)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
