package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// Headroom says where the room that buffers keep free is.
type Headroom struct {
	// At maps each virtual pod that has room to the Key of its Node.
	At map[types.UID]string
	// Missing are the virtual pods for which there is no room, on existing nodes or on those on their way.
	Missing []*model.Pod
}

// FindHeadroom finds room for the virtual pods of buffers on nodes that exist or are on their way. Other waiting pods
// take their room first.
func FindHeadroom(snapshot *model.Snapshot) Headroom {
	found := Headroom{At: map[types.UID]string{}}
	if !slices.ContainsFunc(snapshot.Pending, isVirtual) {
		return found
	}
	// With nothing to buy, a plan only fills nodes.
	packed := Pack(model.Input{Snapshot: snapshot})
	for _, placement := range packed.Placements {
		if placement.Pod.Virtual {
			found.At[placement.Pod.UID] = placement.Node
		}
	}
	for _, unplaced := range packed.Unplaced {
		if unplaced.Pod.Virtual {
			found.Missing = append(found.Missing, unplaced.Pod)
		}
	}
	return found
}

func isVirtual(pod *model.Pod) bool { return pod.Virtual }
