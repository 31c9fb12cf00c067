package main

import (
	"strings"
	"testing"
)

// TestRefinementsFailLoudly checks that a refinement whose place has moved, or whose keyword a marker now sets, is an error
// and not a silent no-op.
func TestRefinementsFailLoudly(t *testing.T) {
	t.Parallel()
	schema := func() map[string]any {
		return map[string]any{"properties": map[string]any{
			"taints": map[string]any{"items": map[string]any{"properties": map[string]any{
				"key": map[string]any{"type": "string", "pattern": "^a$"},
			}}},
		}}
	}
	for _, tc := range []struct {
		reason  string
		r       refinement
		wantErr string
	}{
		{"a keyword that is not there yet is added", refinement{path: "taints[].key", keywords: map[string]any{"minLength": 1}}, ""},
		{"a keyword that is there is not overwritten", refinement{path: "taints[].key", keywords: map[string]any{"pattern": "^b$"}}, "pattern is set already"},
		{"a keyword that is there can be replaced", refinement{path: "taints[].key", replaced: map[string]any{"pattern": "^b$"}}, ""},
		{"a keyword that is not there cannot", refinement{path: "taints[].key", replaced: map[string]any{"minLength": 0}}, "minLength is not set"},
		{"a property that does not exist is named", refinement{path: "taints[].effect", keywords: map[string]any{"minLength": 1}}, `there is no "effect"`},
		{"a map is not an array", refinement{path: "taints{}", keywords: map[string]any{"minLength": 1}}, `there is no "{}"`},
	} {
		err := tc.r.apply(schema())
		switch {
		case tc.wantErr == "" && err != nil:
			t.Errorf("%s: %v", tc.reason, err)
		case tc.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tc.wantErr)):
			t.Errorf("%s: got %v, want an error containing %q", tc.reason, err, tc.wantErr)
		}
	}
}
