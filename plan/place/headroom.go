package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// Headroom says where the room is that buffers keep free.
type Headroom struct {
	// At names, for each virtual pod that has room, the Node by its Key.
	At map[types.UID]string
	// Missing are the virtual pods for which there is no room, neither on a node that is there nor on one on its way.
	Missing []*model.Pod
}

// FindHeadroom finds room for the virtual pods of buffers on the nodes that are there or on their way. Whatever else
// waits for a node takes its own first.
func FindHeadroom(snapshot *model.Snapshot) Headroom {
	found := Headroom{At: map[types.UID]string{}}
	if !slices.ContainsFunc(snapshot.Pending, isVirtual) {
		return found
	}
	// Without anything to buy, a plan only fills nodes.
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
