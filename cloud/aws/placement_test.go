package aws_test

import (
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestTenancyAndEnclaves launches one class in different ways, and reads what EC2 then says of the instances.
func TestTenancyAndEnclaves(t *testing.T) {
	t.Parallel()
	a := startAccount(t, ec2sim.Options{})
	class := a.NodeClass()
	a.resolve(a.provider, class)
	templates := map[string]bool{}
	for _, test := range []struct {
		reason, tenancy string
		requests        []corev1.ResourceName
		want            types.Tenancy
		enclave         bool
	}{
		{reason: "nobody says anything", want: types.TenancyDefault},
		{reason: "a claim wants hardware of its own", tenancy: "dedicated", want: types.TenancyDedicated},
		{reason: "a pod wants slots for enclaves", tenancy: "default", requests: []corev1.ResourceName{"cpu", awsv1.ResourceNIPSlots}, want: types.TenancyDefault, enclave: true},
	} {
		request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{
			Group: "g", Count: 1, Class: class, NodePool: "default", CapacityType: "on-demand", Tenancy: test.tenancy, Requests: test.requests,
			Offerings: []cloud.OfferingKey{{InstanceType: "m5.xlarge", Zone: "us-east-1a", CapacityType: "on-demand"}}})
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		request.Token = test.reason
		templates[detailsOf(t, request).Overrides[0].LaunchTemplate] = true
		result, err := a.provider.Launch(t.Context(), request)
		if err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		out, err := a.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{result.Instances[0].ID}})
		if err != nil {
			t.Fatal(err)
		}
		instance := out.Reservations[0].Instances[0]
		if instance.Placement.Tenancy != test.want {
			t.Errorf("%s: tenancy %s, want %s", test.reason, instance.Placement.Tenancy, test.want)
		}
		if enabled := awssdk.ToBool(instance.EnclaveOptions.Enabled); enabled != test.enclave {
			t.Errorf("%s: enclaves %t, want %t", test.reason, enabled, test.enclave)
		}
	}
	if len(templates) != 3 {
		t.Errorf("%d launch templates for 3 kinds of launches", len(templates))
	}
}
