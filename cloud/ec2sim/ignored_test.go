package ec2sim

import (
	"slices"
	"strings"
	"testing"
)

// TestIgnoredParametersExist checks that every ignored parameter exists in the model and has a reason.
func TestIgnoredParametersExist(t *testing.T) {
	t.Parallel()
	for action, names := range ignoredParameters {
		if action == "*" {
			continue
		}
		found := false
		for _, service := range models() {
			operation, ok := service.Operations[action]
			found = found || ok
			for name, reason := range names {
				if ok && (reason == "" || !service.has(service.Shapes[operation.Input], strings.Split(name, "."))) {
					t.Errorf("%s: %s is not in the model, or is without a reason", action, name)
				}
			}
		}
		if !found {
			t.Errorf("no service of the model has %s", action)
		}
	}
}

// has reports whether a structure has the parameter at path, without list indexes.
func (m *serviceModel) has(s *shape, path []string) bool {
	for s != nil && s.Type == "list" {
		s = m.Shapes[s.Member.Shape]
	}
	if s == nil || len(path) == 0 {
		return len(path) == 0
	}
	check := modelCheck{service: m}
	return slices.ContainsFunc(sortedKeys(s.Members), func(name string) bool {
		return check.wireName(name, s.Members[name]) == path[0] && m.has(m.Shapes[s.Members[name].Shape], path[1:])
	})
}

func TestNamesWithoutIndexes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Filter.12.Value.1": "Filter.Value", "Tags.member.1.Key": "Tags.Key", "LaunchTemplateData.Ebs.Iops": "LaunchTemplateData.Ebs.Iops",
	} {
		if got := listIndex.ReplaceAllString(in, ""); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
