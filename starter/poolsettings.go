package starter

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// eventInvalidSettings says which settings of a NodePool cannot be read, and what follows from that. The reason is Karpenter's.
const eventInvalidSettings = "InvalidDisruptionSettings"

// poolSettings records Events about settings of NodePools that cannot be read.
type poolSettings struct {
	events record.EventRecorder
	// said are the hashes of the messages of the last Events, by NodePool name.
	said map[string]uint64
}

// tell records an Event for each NodePool with settings that cannot be read, and what follows from that, unless the
// last look has found the same.
func (p *poolSettings) tell(snapshot *plan.Snapshot) {
	said := map[string]uint64{}
	for _, pool := range snapshot.NodePools {
		message := unreadable(pool, snapshot.Time)
		if message == "" {
			continue
		}
		said[pool.Name] = markOf(message)
		if p.said[pool.Name] != said[pool.Name] {
			p.events.Event(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID},
				corev1.EventTypeWarning, eventInvalidSettings, message)
		}
	}
	p.said = said
}

// unreadable returns a message about the settings of a NodePool that cannot be read, and what follows from that; empty
// if all can.
func unreadable(pool *karpv1.NodePool, now time.Time) string {
	var keeping, sentences []string
	add := func(err error) {
		if err != nil && !slices.Contains(keeping, err.Error()) {
			keeping = append(keeping, err.Error())
		}
	}
	for _, reason := range plan.DisruptionReasons() {
		_, err := pool.AllowedDisruptions(now, 1, reason)
		add(err)
	}
	_, err := pool.MinimumNodeAge()
	add(err)
	if len(keeping) > 0 {
		sentences = append(sentences, "nodes are kept because of what cannot be read: "+strings.Join(keeping, "; "))
	}
	if _, err := pool.Packing(); err != nil {
		sentences = append(sentences, "pods are packed as the worker's --packing says, because "+err.Error())
	}
	return strings.ReplaceAll(strings.Join(sentences, "; "), "\n", "; ")
}
