package activities

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// maxNominated limits the Events of one plan about pods that have a place: as many as Karpenter emits in a burst. Every Event is
// a write, and tenon why answers for all pods.
const maxNominated = 10

// tellNominated emits Karpenter's Event on pods for which a plan has launched a node. Pods that get room on a node that is
// there are bound at once, and need none.
func (e *explained) tellNominated(pending []*plan.Pod, claims []plan.Claim, groups []workflows.LaunchGroup) {
	var names []string
	for _, group := range groups {
		for _, claim := range group.Claims {
			names = append(names, claim.Name)
		}
	}
	if len(names) != len(claims) {
		return // some could not be created, so it is not certain which claim has which pods
	}
	byUID := make(map[types.UID]*plan.Pod, len(pending))
	for _, pod := range pending {
		byUID[pod.UID] = pod
	}
	told := 0
	for i, claim := range claims {
		for _, uid := range claim.Pods {
			pod := byUID[uid]
			if pod == nil || pod.Virtual {
				continue
			}
			if told++; told > maxNominated {
				return
			}
			e.events.tell(&corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
				corev1.EventTypeNormal, eventNominated, fmt.Sprintf("Pod should schedule on: nodeclaim/%s", names[i]))
		}
	}
}
