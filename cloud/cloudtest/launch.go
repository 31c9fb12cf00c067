package cloudtest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud"
)

func (s *suite) preparingTwiceAsksTheSame() {
	spec := s.spec(s.class(), 2, "on-demand")
	first, second := s.prepare(spec), s.prepare(spec)
	if diff := cmp.Diff(first, second); diff != "" {
		s.Errorf("preparing again asks for something else:\n%s", diff)
	}
	if first.Count != 2 || first.Group != spec.Group || len(first.Details) == 0 {
		s.Errorf("the request does not ask for what the spec wants: %+v", first)
	}
	s.wantAlive(0)
}

func (s *suite) launchGivesWhatWasAskedFor() {
	class := s.class()
	spec := s.spec(class, 3, "on-demand")
	result := s.launch(s.prepare(spec))
	if len(result.Instances) != 3 || len(result.Refused) != 0 {
		s.Fatalf("%d instances and %d refusals, want 3 and none", len(result.Instances), len(result.Refused))
	}
	s.wantAlive(3)
	if !slices.IsSorted(ids(result.Instances)) {
		s.Errorf("the instances are not ordered by id: %v", ids(result.Instances))
	}
	for _, i := range result.Instances {
		asked := slices.Contains(spec.Offerings, cloud.OfferingKey{InstanceType: i.InstanceType, Zone: i.Zone, CapacityType: i.CapacityType})
		if !asked {
			s.Errorf("%s is a %s in %s, which nobody asked for", i.ID, i.InstanceType, i.Zone)
		}
		if i.ProviderID == "" || i.Image == "" || i.LaunchTime.IsZero() || i.LaunchGroup != spec.Group || i.NodePool != spec.NodePool ||
			(i.Profile != "") != (s.cloud.Kind().ProfileKey != "") {
			s.Errorf("the reply lacks facts of the instance: %+v", i)
		}
	}
	listed := s.instances(cloud.Query{IDs: ids(result.Instances)})
	if len(listed) != 3 {
		s.Fatalf("%d of 3 instances are listed", len(listed))
	}
	for n, i := range listed {
		launched := result.Instances[n]
		if i.ProviderID != launched.ProviderID || i.InstanceType != launched.InstanceType || i.Zone != launched.Zone ||
			i.CapacityType != launched.CapacityType || i.Image != launched.Image || i.Profile != launched.Profile || i.LaunchGroup != launched.LaunchGroup {
			s.Errorf("the instance is listed otherwise than it was launched:\n%s", cmp.Diff(launched, i))
		}
	}
}

func (s *suite) launchOfSpot() {
	result := s.launch(s.prepare(s.spec(s.class(), 2, "spot")))
	for _, i := range s.instances(cloud.Query{IDs: ids(result.Instances)}) {
		if i.CapacityType != "spot" {
			s.Errorf("%s is paid for as %s", i.ID, i.CapacityType)
		}
	}
	s.wantAlive(2)
}

func (s *suite) sameTokenLaunchesOnce() {
	request := s.prepare(s.spec(s.class(), 2, "on-demand"))
	first, second := s.launch(request), s.launch(request)
	if diff := cmp.Diff(ids(first.Instances), ids(second.Instances)); diff != "" {
		s.Errorf("asking again brought other instances:\n%s", diff)
	}
	s.wantAlive(2)
}

func (s *suite) lostReply() {
	request := s.prepare(s.spec(s.class(), 2, "on-demand"))
	s.harness.LoseLaunchReplies(1)
	result, err := s.cloud.Launch(s.ctx(), request)
	if err != nil {
		s.wantKind(err, cloud.Transient)
		result = s.launch(request)
	}
	if len(result.Instances) != 2 {
		s.Errorf("%d instances, want 2", len(result.Instances))
	}
	s.wantAlive(2)
}

func (s *suite) sameTokenOtherRequest() {
	request := s.prepare(s.spec(s.class(), 2, "on-demand"))
	first := s.launch(request)
	other := request
	other.Count = 3
	_, err := s.cloud.Launch(s.ctx(), other)
	s.wantKind(err, cloud.ParameterMismatch)
	s.wantAlive(2)
	found := s.instances(cloud.Query{LaunchGroup: request.Group})
	if diff := cmp.Diff(ids(first.Instances), ids(found)); diff != "" {
		s.Errorf("the group does not lead to the instances:\n%s", diff)
	}
}

func (s *suite) partialFulfilment() {
	spec := s.spec(s.class(), 5, "on-demand")
	s.harness.LimitCapacity(cloud.OfferingKey{}, 2)
	result := s.launch(s.prepare(spec))
	if len(result.Instances) != 2 {
		s.Errorf("%d instances, want the 2 there were", len(result.Instances))
	}
	if len(result.Refused) == 0 {
		s.Error("nothing is said to have been refused")
	}
	for _, refusal := range result.Refused {
		if !slices.Contains(spec.Offerings, refusal.OfferingKey) || refusal.Code == "" {
			s.Errorf("the refusal %+v is not of an offering that was asked for", refusal)
		}
	}
	s.wantAlive(2)
}

func (s *suite) noCapacityAtAll() {
	spec := s.spec(s.class(), 2, "on-demand")
	request := s.prepare(spec)
	s.harness.LimitCapacity(cloud.OfferingKey{}, 0)
	result, err := s.cloud.Launch(s.ctx(), request)
	s.wantKind(err, cloud.InsufficientCapacity)
	if len(result.Instances) != 0 || len(result.Refused) == 0 {
		s.Errorf("%d instances and %d refusals, want none and some", len(result.Instances), len(result.Refused))
	}
	s.wantAlive(0)
}

func (s *suite) unavailableOfferingsComeBack() {
	class := s.class()
	spec := s.spec(class, 1, "on-demand")
	spec.Offerings = spec.Offerings[:1]
	wanted := spec.Offerings[0]
	request := s.prepare(spec)
	s.harness.LimitCapacity(wanted, 0)
	_, err := s.cloud.Launch(s.ctx(), request)
	s.wantKind(err, cloud.InsufficientCapacity)
	if s.available(class, wanted) {
		s.Error("an offering that was just refused counts as available")
	}
	_, err = s.cloud.PrepareLaunch(s.ctx(), spec)
	s.wantKind(err, cloud.InsufficientCapacity)

	s.harness.Advance(3*time.Minute + time.Second)
	s.harness.LimitCapacity(wanted, Unlimited)
	if !s.available(class, wanted) {
		s.Error("the offering has not come back after three minutes")
	}
	spec.Group += "-again"
	s.launch(s.prepare(spec))
	s.wantAlive(1)
}

func (s *suite) available(class cloud.NodeClass, key cloud.OfferingKey) bool {
	s.Helper()
	for _, instanceType := range s.instanceTypes(class) {
		if instanceType.Name != key.InstanceType {
			continue
		}
		for _, offering := range instanceType.Offerings {
			if offering.Zone == key.Zone && offering.CapacityType == key.CapacityType {
				return offering.Available
			}
		}
	}
	s.Fatalf("the offering %+v is gone", key)
	return false
}
