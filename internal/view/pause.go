package view

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Pause is what a person has stopped.
type Pause struct {
	// NodePool is empty for the whole cluster.
	NodePool string `json:"nodePool,omitempty"`
	karpv1.Pause
	// Observed says that the NodePool is only observed.
	Observed bool `json:"observed,omitempty"`
}

// Pauses returns what is stopped now: in the whole cluster first, then by NodePool.
func Pauses(everywhere []karpv1.Pause, pools []*karpv1.NodePool, now time.Time) []Pause {
	stopped := []Pause{}
	add := func(pool string, pauses []karpv1.Pause) {
		for _, pause := range pauses {
			if pause.Holds(pause.What, now) {
				stopped = append(stopped, Pause{NodePool: pool, Pause: pause})
			}
		}
	}
	add("", everywhere)
	for _, pool := range pools {
		add(pool.Name, pool.Pauses())
		if pool.Observed() {
			stopped = append(stopped, Pause{NodePool: pool.Name, Observed: true})
		}
	}
	return stopped
}

// Words say in a sentence what is stopped, where, by whom, until when and why.
func (p Pause) Words() string {
	where := "in the whole cluster"
	if p.NodePool != "" {
		where = "for NodePool " + p.NodePool
	}
	if p.Observed {
		return "everything is only observed " + where
	}
	text := string(p.What) + " is paused " + where
	if p.By != "" {
		text += " by " + p.By
	}
	if !p.Until.IsZero() {
		text += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
