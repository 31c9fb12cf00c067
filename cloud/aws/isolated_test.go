package aws_test

import (
	"context"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// isolate creates an instance profile and then makes IAM and Pricing hang. It returns a class that names the profile.
func (a *account) isolate() *awsv1.EC2NodeClass {
	a.t.Helper()
	cfg, err := config.LoadDefaultConfig(a.t.Context(), a.admin()...)
	if err != nil {
		a.t.Fatal(err)
	}
	api, name := iam.NewFromConfig(cfg), awssdk.String("given")
	if _, err := api.CreateInstanceProfile(a.t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: name}); err != nil {
		a.t.Fatal(err)
	}
	if _, err := api.AddRoleToInstanceProfile(a.t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: name, RoleName: awssdk.String("KarpenterNodeRole-blue")}); err != nil {
		a.t.Fatal(err)
	}
	a.change(func(f *ec2sim.Faults) {
		f.Slow = []ec2sim.ReplyFault{{Service: "iam", Delay: ec2sim.Duration(time.Hour)}, {Service: "pricing", Delay: ec2sim.Duration(time.Hour)}}
	})
	class := a.NodeClass()
	class.Spec.Role, class.Spec.InstanceProfile = "", name
	return class
}

// TestPrivateCluster checks that a class that names its instance profile becomes Ready, gets instance types, launches
// and is released although IAM and Pricing do not answer.
func TestPrivateCluster(t *testing.T) {
	t.Parallel()
	for _, isolated := range []bool{false, true} {
		t.Run(map[bool]string{false: "nobody says so", true: "isolated VPC"}[isolated], func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			class := a.isolate()
			provider, err := aws.New(t.Context(), aws.Options{Cluster: "blue", Load: a.load(), Now: a.Now, IsolatedVPC: isolated})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(provider.Close)
			// The SDK gives up on a call that hangs after a minute, and retries it.
			ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second)
			defer cancel()
			resolved, err := provider.ResolveNodeClass(ctx, class)
			if err != nil {
				t.Fatalf("resolve: %v", err)
			}
			class = resolved.(*awsv1.EC2NodeClass)
			if !class.IsTrue("Ready") || class.Status.InstanceProfile != "given" {
				t.Errorf("the class is not ready: %+v", class.Status.Conditions)
			}
			types, err := provider.InstanceTypes(ctx, class)
			if err != nil {
				t.Fatalf("instance types: %v", err)
			}
			priced := false
			for _, it := range types {
				for _, offering := range it.Offerings {
					priced = priced || offering.CapacityType == "on-demand" && offering.Available && offering.Price > 0
				}
			}
			if !priced {
				t.Error("no instance type has a price")
			}
			request, err := provider.PrepareLaunch(ctx, a.spec(class, "one", 1))
			if err != nil {
				t.Fatalf("prepare: %v", err)
			}
			request.Token = "token"
			if _, err := provider.Launch(ctx, request); err != nil {
				t.Fatalf("launch: %v", err)
			}
			if err := provider.ReleaseNodeClass(ctx, class); err != nil {
				t.Fatalf("release: %v", err)
			}
			calls := a.sim.CallCounts()
			if calls["GetInstanceProfile"].Total > 0 {
				t.Error("IAM was asked for a profile that somebody else made")
			}
			if isolated && calls["ListInstanceProfiles"].Total+calls["GetProducts"].Total > 0 {
				t.Error("IAM or Pricing was called from an isolated VPC")
			}
		})
	}
}

// TestRoleNeedsIAM checks that a class with a role reports at once that an isolated VPC cannot create its instance
// profile.
func TestRoleNeedsIAM(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.isolate()
	provider, err := aws.New(t.Context(), aws.Options{Cluster: "blue", Load: a.load(), Now: a.Now, IsolatedVPC: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	class := a.NodeClass()
	a.resolve(provider, class)
	condition := meta.FindStatusCondition(class.Status.Conditions, awsv1.ConditionTypeInstanceProfileReady)
	if condition == nil || condition.Reason != "IAMUnreachable" {
		t.Errorf("the instance profile is %+v", condition)
	}
}

// TestUnknownInstanceProfile checks that the dry run finds a given instance profile that does not exist.
func TestUnknownInstanceProfile(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	class.Spec.Role, class.Spec.InstanceProfile = "", awssdk.String("no-such-profile")
	a.resolve(a.provider, class)
	if class.IsTrue(awsv1.ConditionTypeValidationSucceeded) || class.IsTrue("Ready") {
		t.Error("a class whose instance profile nobody made is ready")
	}
}
