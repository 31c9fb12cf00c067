package cloudtest

import (
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud"
)

func (s *suite) launchGroups() {
	class := s.class()
	first := s.launch(s.prepare(s.spec(class, 2, "on-demand")))
	second := s.launch(s.prepare(s.spec(class, 1, "on-demand")))
	for _, result := range []cloud.LaunchResult{first, second} {
		found := s.instances(cloud.Query{LaunchGroup: result.Instances[0].LaunchGroup})
		if diff := cmp.Diff(ids(result.Instances), ids(found)); diff != "" {
			s.Errorf("instances of group %s (-launched +found):\n%s", result.Instances[0].LaunchGroup, diff)
		}
	}
	if all := s.instances(cloud.Query{}); len(all) != 3 || !slices.IsSorted(ids(all)) {
		s.Errorf("all instances are %v, want 3 ordered by id", ids(all))
	}
	if none := s.instances(cloud.Query{LaunchGroup: "no-such-group"}); len(none) != 0 {
		s.Errorf("a group nobody launched has %v", ids(none))
	}
}

func (s *suite) unknownInstancesAreLeftOut() {
	s.harness.HideNewInstances(time.Minute)
	launched := s.launch(s.prepare(s.spec(s.class(), 1, "on-demand"))).Instances
	query := cloud.Query{IDs: append(ids(launched), "i-0123456789abcdef0")}
	if found := s.instances(query); len(found) != 0 {
		s.Errorf("%v are listed, though the cloud does not know of them yet", ids(found))
	}
	s.harness.Advance(time.Minute + time.Second)
	if diff := cmp.Diff(ids(launched), ids(s.instances(query))); diff != "" {
		s.Errorf("a minute later (-launched +found):\n%s", diff)
	}
}

func (s *suite) terminateIsIdempotent() {
	launched := ids(s.launch(s.prepare(s.spec(s.class(), 3, "on-demand"))).Instances)
	for range 2 {
		if err := s.cloud.Terminate(s.ctx(), launched[:2]); err != nil {
			s.Fatalf("Terminate: %v", err)
		}
	}
	if err := s.cloud.Terminate(s.ctx(), []string{"i-0123456789abcdef0"}); err != nil {
		s.Errorf("terminating what nobody knows: %v", err)
	}
	if err := s.cloud.Terminate(s.ctx(), nil); err != nil {
		s.Errorf("terminating nothing: %v", err)
	}
	s.wantAlive(1)
	if found := s.instances(cloud.Query{IDs: launched}); len(found) != 1 {
		s.Errorf("%v are listed, want the one that was spared", ids(found))
	}
	s.harness.Advance(10 * time.Minute)
	// The cloud shows terminated instances for a while.
	for _, i := range s.instances(cloud.Query{IDs: launched, Terminating: true}) {
		if i.ID != launched[2] && i.State != "terminated" {
			s.Errorf("%s is %s long after it was terminated", i.ID, i.State)
		}
	}
}

func (s *suite) terminateBeforeListed() {
	s.harness.HideNewInstances(time.Minute)
	launched := ids(s.launch(s.prepare(s.spec(s.class(), 2, "on-demand"))).Instances)
	// The cloud may be unable to terminate instances it does not list yet, but then Terminate must not report success.
	if err := s.cloud.Terminate(s.ctx(), launched); err != nil {
		s.wantKind(err, cloud.Transient)
		s.harness.Advance(time.Minute + time.Second)
		if err := s.cloud.Terminate(s.ctx(), launched); err != nil {
			s.Errorf("Terminate: %v", err)
		}
	}
	s.wantAlive(0)
}

func (s *suite) foreignInstances() {
	mine := ids(s.launch(s.prepare(s.spec(s.class(), 1, "on-demand"))).Instances)
	foreign := s.harness.ForeignInstance()
	for _, query := range []cloud.Query{{}, {Terminating: true}, {IDs: []string{foreign}}} {
		if found := s.instances(query); slices.Contains(ids(found), foreign) {
			s.Errorf("%+v lists an instance of another owner", query)
		}
	}
	s.wantKind(s.cloud.Terminate(s.ctx(), append([]string{foreign}, mine...)), cloud.Forbidden)
	s.wantKind(s.cloud.Tag(s.ctx(), foreign, map[string]string{"Name": "mine"}), cloud.Forbidden)
	if alive := s.harness.Alive(); !slices.Equal(alive, []string{foreign}) {
		s.Errorf("%v are alive, want the foreign one alone: a refusal must not spare the others", alive)
	}
}

func (s *suite) tagsAreAdded() {
	launched := s.launch(s.prepare(s.spec(s.class(), 1, "on-demand"))).Instances[0]
	for range 2 {
		if err := s.cloud.Tag(s.ctx(), launched.ID, map[string]string{"Name": "node-1", "karpenter.sh/nodeclaim": "default-abc"}); err != nil {
			s.Fatalf("Tag: %v", err)
		}
	}
	found := s.instances(cloud.Query{IDs: []string{launched.ID}})
	if len(found) != 1 || found[0].Tags["Name"] != "node-1" || found[0].Tags["karpenter.sh/nodeclaim"] != "default-abc" ||
		found[0].LaunchGroup != launched.LaunchGroup {
		s.Errorf("the instance is %+v, want the new tags and the old ones", found)
	}
}
