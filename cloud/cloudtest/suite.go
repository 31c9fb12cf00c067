package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tenon-sh/tenon/cloud"
)

// suite is one test on one account.
type suite struct {
	*testing.T
	cloud   cloud.Provider
	harness Harness
	groups  int
}

func (s *suite) ctx() context.Context { return s.Context() }

// class returns a resolved class.
func (s *suite) class() cloud.NodeClass {
	s.Helper()
	class := s.resolve(s.harness.NodeClass())
	if !class.IsTrue("Ready") {
		s.Fatalf("the harness's class is not ready: %+v", *class.StatusConditions())
	}
	return class
}

func (s *suite) resolve(class cloud.NodeClass) cloud.NodeClass {
	s.Helper()
	resolved, err := s.cloud.ResolveNodeClass(s.ctx(), class)
	if err != nil {
		s.Fatalf("ResolveNodeClass: %v", err)
	}
	return resolved
}

func (s *suite) instanceTypes(class cloud.NodeClass) []*cloud.InstanceType {
	s.Helper()
	types, err := s.cloud.InstanceTypes(s.ctx(), class)
	if err != nil {
		s.Fatalf("InstanceTypes: %v", err)
	}
	return types
}

// spec returns a launch of ordinary instances of a few types in all their zones.
func (s *suite) spec(class cloud.NodeClass, count int, capacityType string) cloud.LaunchSpec {
	s.Helper()
	s.groups++
	spec := cloud.LaunchSpec{
		Group: fmt.Sprintf("group-%d", s.groups), Count: count, Class: class, NodePool: "default", CapacityType: capacityType,
		Labels: map[string]string{"karpenter.sh/nodepool": "default"},
	}
	types := 0
	for _, instanceType := range s.instanceTypes(class) {
		ordinary := !instanceType.BareMetal && instanceType.Capacity.Cpu().Value() <= 2
		before := len(spec.Offerings)
		for _, offering := range instanceType.Offerings {
			if ordinary && offering.Available && offering.CapacityType == capacityType {
				spec.Offerings = append(spec.Offerings, cloud.OfferingKey{
					InstanceType: instanceType.Name, Zone: offering.Zone, CapacityType: capacityType,
				})
			}
		}
		if len(spec.Offerings) > before {
			types++
		}
		if types == 5 {
			break
		}
	}
	if types == 0 {
		s.Fatal("no ordinary instance type is available")
	}
	return spec
}

// prepare prepares a launch and gives it a token.
func (s *suite) prepare(spec cloud.LaunchSpec) cloud.LaunchRequest {
	s.Helper()
	request, err := s.cloud.PrepareLaunch(s.ctx(), spec)
	if err != nil {
		s.Fatalf("PrepareLaunch: %v", err)
	}
	request.Token = "token-" + spec.Group
	return request
}

func (s *suite) launch(request cloud.LaunchRequest) cloud.LaunchResult {
	s.Helper()
	result, err := s.cloud.Launch(s.ctx(), request)
	if err != nil {
		s.Fatalf("Launch: %v", err)
	}
	return result
}

func (s *suite) instances(query cloud.Query) []cloud.Instance {
	s.Helper()
	instances, err := s.cloud.Instances(s.ctx(), query)
	if err != nil {
		s.Fatalf("Instances(%+v): %v", query, err)
	}
	return instances
}

func (s *suite) wantKind(err error, kind cloud.ErrorKind) {
	s.Helper()
	if cloud.KindOf(err) != kind {
		s.Errorf("the error's kind is %q, want %q: %v", cloud.KindOf(err), kind, err)
	}
	if classified := new(cloud.Error); err != nil && !errors.As(err, &classified) {
		s.Errorf("the error is not a *cloud.Error: %v", err)
	}
}

func (s *suite) wantAlive(count int) {
	s.Helper()
	if alive := s.harness.Alive(); len(alive) != count {
		s.Errorf("%d instances are alive, want %d: %v", len(alive), count, alive)
	}
}

func ids(instances []cloud.Instance) []string {
	out := make([]string, len(instances))
	for i, instance := range instances {
		out[i] = instance.ID
	}
	return out
}
