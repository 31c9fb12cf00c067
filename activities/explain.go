package activities

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// maxExplain limits the Events of one plan. Provisioning's details show what thousands of pods have in common.
	maxExplain = 50
	// explainAgain is how long the same message about the same pod is not repeated. Karpenter uses the same time.
	explainAgain = 5 * time.Minute
)

// explained tells why pods stay pending, and remembers which messages it has sent. The memory is this process's own: after
// a restart it sends all of them again.
type explained struct {
	events recorder

	mu   sync.Mutex
	said map[explanation]time.Time
	// toldPools is when the last Event about each NodePool of which nothing can be launched was sent.
	toldPools map[explanation]time.Time
}

type explanation struct {
	about   types.UID
	message string
}

// choose returns at most maxExplain messages about unplaced pods: first one pod for each reason, then others.
func (e *explained) choose(unplaced []plan.Unplaced, now time.Time) []toldPod {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, at := range e.said {
		if now.Sub(at) >= explainAgain {
			delete(e.said, key)
		}
	}
	if e.said == nil {
		e.said = map[explanation]time.Time{}
	}
	var chosen []toldPod
	covered := map[string]bool{}
	for _, first := range []bool{true, false} {
		for i := range unplaced {
			pod := unplaced[i].Pod
			if len(chosen) == maxExplain {
				return chosen
			}
			if pod.Virtual {
				continue
			}
			key := explanation{about: pod.UID, message: shortened("Failed to schedule pod, " + reasons(unplaced[i].Reasons))}
			if _, said := e.said[key]; said || first && covered[key.message] {
				continue
			}
			covered[key.message] = true
			e.said[key] = now
			chosen = append(chosen, toldPod{pod, key.message})
		}
	}
	return chosen
}

// Karpenter's messages about NodePools of which nothing can be launched. People match them.
const (
	nothingFits  = "NodePool requirements filtered out all compatible available instance types"
	tooFewDiffer = nothingFits + " due to minValues incompatibility"
	unsoldAgain  = time.Minute
)

// tellUnsellable emits Events on NodePools of which nothing can be launched, each at most once a minute, as Karpenter does.
func (e *explained) tellUnsellable(unsellable []plan.Unsellable, pools []plan.Pool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	told := map[explanation]time.Time{}
	for _, u := range unsellable {
		i := slices.IndexFunc(pools, func(p plan.Pool) bool { return p.NodePool.Name == u.NodePool })
		if i < 0 {
			continue
		}
		key := explanation{about: pools[i].NodePool.UID, message: nothingFits}
		if u.MinValues {
			key.message = tooFewDiffer
		}
		if at, before := e.toldPools[key]; before && now.Sub(at) < unsoldAgain {
			told[key] = at
			continue
		}
		told[key] = now
		e.events.tell(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: u.NodePool, UID: key.about},
			corev1.EventTypeWarning, eventNoCompatibleTypes, key.message)
	}
	e.toldPools = told
}

// toldPod is a pod and the message about it.
type toldPod struct {
	pod     *plan.Pod
	message string
}

// explain emits Events that say why pods stay pending.
func (e *explained) explain(unplaced []plan.Unplaced, growth map[types.UID]plan.Growth, now time.Time) {
	for _, told := range e.choose(unplaced, time.Now()) {
		reason := eventFailedScheduling
		if growth[told.pod.UID].Paused(now) {
			reason = eventGrowthPaused
		}
		e.events.tell(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: told.pod.Namespace, Name: told.pod.Name, UID: told.pod.UID},
			corev1.EventTypeWarning, reason, told.message)
	}
}
