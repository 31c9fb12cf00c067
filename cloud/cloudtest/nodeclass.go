package cloudtest

import (
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tenon-sh/tenon/cloud"
)

func (s *suite) kindIsComplete() {
	kind := s.cloud.Kind()
	if kind.Empty() || kind.Resource == "" || kind.Finalizer == "" || kind.HashKey == "" || kind.HashVersionKey == "" || kind.HashVersion == "" {
		s.Errorf("the kind is not complete: %+v", kind)
	}
	class := s.harness.NodeClass()
	scheme := runtime.NewScheme()
	if err := kind.AddToScheme(scheme); err != nil {
		s.Fatal(err)
	}
	for _, object := range []cloud.NodeClass{class, kind.New()} {
		if kinds, _, err := scheme.ObjectKinds(object); err != nil || len(kinds) != 1 || kinds[0] != kind.GroupVersionKind {
			s.Errorf("%T is registered as %v, want %s: %v", object, kinds, kind.GroupVersionKind, err)
		}
	}
	if one, err := class.Hash(""); err != nil || one == "" {
		s.Errorf("the class has the hash %q: %v", one, err)
	}
}

func (s *suite) nodeClassResolves() {
	class := s.harness.NodeClass()
	before := class.DeepCopyObject()
	resolved, err := s.cloud.ResolveNodeClass(s.ctx(), class)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(before, class.DeepCopyObject()); diff != "" {
		s.Errorf("ResolveNodeClass changed its argument:\n%s", diff)
	}
	if !resolved.IsTrue("Ready") || resolved.GetName() != class.GetName() {
		s.Errorf("the class %s is not Ready", resolved.GetName())
	}
	for _, condition := range *resolved.StatusConditions() {
		if condition.Status != metav1.ConditionTrue {
			s.Errorf("condition %s is not True: %+v", condition.Type, condition)
		}
	}
	again, err := s.cloud.ResolveNodeClass(s.ctx(), resolved)
	if err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff(resolved, again); diff != "" {
		s.Errorf("resolving again came to something else:\n%s", diff)
	}
}

func (s *suite) nodeClassWithoutMatches() {
	for condition, class := range s.harness.SelectsNothing() {
		resolved, err := s.cloud.ResolveNodeClass(s.ctx(), class)
		if err != nil {
			s.Errorf("%s: a selector without matches is a condition, not an error: %v", condition, err)
			continue
		}
		for _, name := range []string{condition, "Ready"} {
			found := meta.FindStatusCondition(*resolved.StatusConditions(), name)
			if found == nil || found.Status != metav1.ConditionFalse || found.Reason == "" || found.Message == "" {
				s.Errorf("%s: condition %s is %+v, want False with a reason", condition, name, found)
			}
		}
	}
}

func (s *suite) releaseIsIdempotent() {
	class := s.class()
	s.prepare(s.spec(class, 1, "on-demand"))
	for range 2 {
		if err := s.cloud.ReleaseNodeClass(s.ctx(), class); err != nil {
			s.Fatalf("ReleaseNodeClass: %v", err)
		}
	}
	// The class can be resolved again and used for launches.
	class = s.resolve(class)
	s.launch(s.prepare(s.spec(class, 1, "on-demand")))
}

func (s *suite) instanceTypesNeedAResolvedClass() {
	_, err := s.cloud.InstanceTypes(s.ctx(), s.harness.NodeClass())
	s.wantKind(err, cloud.NodeClassNotReady)
}
