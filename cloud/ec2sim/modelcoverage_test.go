package ec2sim

import (
	"maps"
	"testing"
)

// TestEveryActionIsChecked checks that the model has the requests of every action, so that they are checked against it.
func TestEveryActionIsChecked(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for service, actions := range s.handlers {
		for action := range maps.Keys(actions) {
			if model := models()[service]; model.Shapes[model.Operations[action].Input] == nil {
				t.Errorf("%s:%s is not in the model", service, action)
			}
		}
	}
}
