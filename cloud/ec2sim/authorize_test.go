package ec2sim_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// writePolicy writes a policy that allows one action into a directory for LoadPolicies.
func writePolicy(t *testing.T, dir, key, action string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, key), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "` + action + `", "Resource": "*"}]}`
	if err := os.WriteFile(filepath.Join(dir, key, "only.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPoliciesLimitTheirPrincipal checks that the access key of the signature identifies the caller, and that a caller
// without policies may do everything.
func TestPoliciesLimitTheirPrincipal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePolicy(t, dir, "reader", "ec2:DescribeSubnets")
	policies, err := ec2sim.LoadPolicies(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, ec2sim.Options{Policies: policies})
	for _, key := range []string{"reader", "somebody"} {
		api := ec2.New(a.ec2.Options(), func(o *ec2.Options) { o.Credentials = credentials.NewStaticCredentialsProvider(key, "secret", "") })
		if _, err := api.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
			t.Errorf("%s may not read subnets: %v", key, err)
		}
		_, err := api.DescribeVpcs(t.Context(), &ec2.DescribeVpcsInput{})
		if key == "reader" {
			wantCode(t, err, "UnauthorizedOperation")
		} else if err != nil {
			t.Errorf("%s may not read VPCs: %v", key, err)
		}
	}
}

func TestPoliciesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := ec2sim.LoadPolicies(dir); err == nil {
		t.Error("a directory without policies is accepted")
	}
	writePolicy(t, dir, "worker", "no-service")
	if _, err := ec2sim.LoadPolicies(dir); err == nil {
		t.Error("an action without a service is accepted")
	}
}
