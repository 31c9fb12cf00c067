package v1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// PauseScope is what a Pause stops.
type PauseScope string

// The scopes of pauses.
const (
	// PauseProvisioning stops launches: for pods, for static pools, for replacements and for claims made by hand.
	PauseProvisioning PauseScope = "provisioning"
	// PauseDisruption stops every removal of a node that Tenon decides on: consolidation, drift, expiry, also by force, the
	// surplus of static pools, and repair.
	PauseDisruption PauseScope = "disruption"
	// PauseInterruption stops what follows from the cloud's messages about instances that it takes away.
	PauseInterruption PauseScope = "interruption"
)

// PauseAll is how people write all scopes.
const PauseAll = "all"

// PauseScopes returns all scopes.
func PauseScopes() []PauseScope {
	return []PauseScope{PauseProvisioning, PauseDisruption, PauseInterruption}
}

// ParsePauseScopes reads scopes as people write them: names separated by commas, or all.
func ParsePauseScopes(text string) ([]PauseScope, error) {
	var scopes []PauseScope
	for word := range strings.SplitSeq(text, ",") {
		switch scope := PauseScope(strings.TrimSpace(word)); {
		case scope == PauseAll:
			return PauseScopes(), nil
		case !slices.Contains(PauseScopes(), scope):
			return nil, fmt.Errorf("%q must be provisioning, disruption, interruption or all", word)
		case !slices.Contains(scopes, scope):
			scopes = append(scopes, scope)
		}
	}
	return scopes, nil
}

// What is paused in the whole cluster is in one ConfigMap under its only key. The value is read like the annotation
// PauseAnnotationKey. Its namespace is the same in every cluster, so that nobody pauses in the wrong one.
const (
	PauseNamespace     = "kube-system"
	PauseConfigMapName = "tenon-pauses"
	PauseConfigMapKey  = "pauses"
)

// Pause says that a person has stopped one kind of work.
//
// +kubebuilder:object:generate=false
type Pause struct {
	What PauseScope `json:"what"`
	// Reason is why, in the person's own words. By is the user name by which the API server knows the person; empty if the
	// pause was written without the command.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Since is when the pause began. It ends by itself at Until; zero means not before somebody resumes.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// Holds says whether a pause stops something at a moment.
func (p Pause) Holds(scope PauseScope, now time.Time) bool {
	return p.What == scope && (p.Until.IsZero() || now.Before(p.Until))
}

// ReadPauses reads the pauses that an annotation or the ConfigMap holds: a JSON list, as FormatPauses writes it, or scopes
// as people write them, such as disruption, which then last until somebody removes them. Where the text cannot be read,
// everything is paused, and the reason says why.
func ReadPauses(text string) []Pause {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	var pauses []Pause
	var err error
	if strings.HasPrefix(text, "[") {
		err = json.Unmarshal([]byte(text), &pauses)
		for _, pause := range pauses {
			if err == nil && !slices.Contains(PauseScopes(), pause.What) {
				err = fmt.Errorf("what: %q must be provisioning, disruption or interruption", pause.What)
			}
		}
	} else {
		var scopes []PauseScope
		scopes, err = ParsePauseScopes(text)
		for _, scope := range scopes {
			pauses = append(pauses, Pause{What: scope, Reason: "written by hand"})
		}
	}
	if err == nil {
		return pauses
	}
	pauses = nil
	for _, scope := range PauseScopes() {
		pauses = append(pauses, Pause{What: scope, Reason: "what is paused cannot be read: " + err.Error()})
	}
	return pauses
}

// FormatPauses writes pauses as ReadPauses reads them; empty for none.
func FormatPauses(pauses []Pause) string {
	if len(pauses) == 0 {
		return ""
	}
	text, err := json.Marshal(pauses)
	if err != nil {
		return "" // only years beyond 9999 cannot be encoded
	}
	return string(text)
}

// SetPause returns pauses with a pause in the place of others of its scope, and without those that are over.
func SetPause(pauses []Pause, pause Pause, now time.Time) []Pause {
	kept := LiftPauses(pauses, []PauseScope{pause.What}, now)
	return append(kept, pause)
}

// LiftPauses returns pauses without those of some scopes, and without those that are over.
func LiftPauses(pauses []Pause, scopes []PauseScope, now time.Time) []Pause {
	return slices.DeleteFunc(slices.Clone(pauses), func(p Pause) bool {
		return slices.Contains(scopes, p.What) || !p.Holds(p.What, now)
	})
}

// Pauses returns what is paused for the pool, by its annotation PauseAnnotationKey.
func (in *NodePool) Pauses() []Pause { return ReadPauses(in.Annotations[PauseAnnotationKey]) }

// Observed says whether the pool is only observed, by its annotation ObserveAnnotationKey. It is if the value is anything
// but false, since whoever wrote it wanted Tenon to keep away.
func (in *NodePool) Observed() bool {
	value, some := in.Annotations[ObserveAnnotationKey]
	return some && value != "false"
}

// Stop says why something must not be done now.
//
// +kubebuilder:object:generate=false
type Stop struct {
	Pause
	// NodePool is the pool that the stop is for; empty for the whole cluster.
	NodePool string
	// Observe says that the pool is only observed: nobody has paused anything.
	Observe bool
	// Window says why no maintenance window is open; empty if a pause stops it, or observing.
	Window string
}

// String says in half a sentence what is stopped, for how long, why and by whom.
func (s *Stop) String() string {
	if s.Window != "" {
		return s.Window
	}
	if s.Observe {
		return fmt.Sprintf("NodePool %s is only observed (%s)", s.NodePool, ObserveAnnotationKey)
	}
	text := string(s.What) + " is paused in the whole cluster"
	if s.NodePool != "" {
		text = fmt.Sprintf("%s is paused for NodePool %s", s.What, s.NodePool)
	}
	if !s.Until.IsZero() {
		text += " until " + s.Until.UTC().Format(time.RFC3339)
	}
	if s.By != "" {
		text += " by " + s.By
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}

// StopOf decides whether something may be done now for a NodePool, which may be nil: nil if it may, and else what stops it.
// everywhere is what is paused in the whole cluster. Of several stops it returns the one that holds longest.
func StopOf(scope PauseScope, everywhere []Pause, pool *NodePool, now time.Time) *Stop {
	var found *Stop
	longer := func(s Stop) {
		if found == nil || !found.Until.IsZero() && (s.Until.IsZero() || s.Until.After(found.Until)) {
			found = &s
		}
	}
	for _, pause := range everywhere {
		if pause.Holds(scope, now) {
			longer(Stop{Pause: pause})
		}
	}
	if pool == nil {
		return found
	}
	for _, pause := range pool.Pauses() {
		if pause.Holds(scope, now) {
			longer(Stop{Pause: pause, NodePool: pool.Name})
		}
	}
	if mistake := pool.approvalMistake(); mistake != "" && scope == PauseDisruption {
		longer(Stop{Pause: Pause{What: scope, Reason: "what needs approval cannot be read: " + mistake}, NodePool: pool.Name})
	}
	if pool.Observed() {
		longer(Stop{Pause: Pause{What: scope}, NodePool: pool.Name, Observe: true})
	}
	return found
}
