package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// Headroom says where the room is that buffers keep free.
type Headroom struct {
	// At names, for each virtual pod that has room, the Node by its Key.
	At map[types.UID]string
	// Missing are the virtual pods for which there is no room, neither on a node that is there nor on one on its way.
	Missing []*Pod
}

// FindHeadroom finds room for the virtual pods of buffers on the nodes that are there or on their way. Whatever else
// waits for a node takes its own first.
func FindHeadroom(snapshot *Snapshot) Headroom {
	found := Headroom{At: map[types.UID]string{}}
	if !hasVirtual(snapshot.Pending) {
		return found
	}
	// Without anything to buy, a plan only fills nodes.
	packed := Pack(Input{Snapshot: snapshot})
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

// KeptForHeadroom returns those of some nodes that cannot go together with the others, because buffers need the room
// they have free: each with one virtual pod that it is needed for. Whoever takes nodes away asks this first, about all
// nodes that are to go. Pods that run on them move first, and only nodes that are ready take anybody's place.
func KeptForHeadroom(snapshot *Snapshot, going []*Node) map[string]*Pod {
	if len(going) == 0 || !hasVirtual(snapshot.Pending) {
		return nil
	}
	snapshot = snapshot.ready()
	before := FindHeadroom(snapshot)
	after := FindHeadroom(snapshot.without(keysOf(going)))
	if len(after.Missing) <= len(before.Missing) {
		return nil
	}
	// The pods that lose their place are put back onto as few of the nodes as they need.
	only := *snapshot
	only.Pending, only.Nodes = after.Missing, going
	back := FindHeadroom(&only)
	kept := back.hosts(after.Missing)
	leaving := keysOf(going)
	for key := range kept {
		delete(leaving, key)
	}
	if missing := FindHeadroom(snapshot.without(leaving)).Missing; len(missing) <= len(before.Missing) {
		return kept
	}
	// They cannot be judged by themselves, as pods that are to be spread: then they stay where they were.
	return before.hosts(snapshot.Pending)
}

// hosts are the nodes that pods were found room on, each with one of the pods.
func (h *Headroom) hosts(pods []*Pod) map[string]*Pod {
	hosts := map[string]*Pod{}
	for _, pod := range pods {
		if key, ok := h.At[pod.UID]; ok && hosts[key] == nil {
			hosts[key] = pod
		}
	}
	return hosts
}

// ready is the snapshot without the nodes that are on their way.
func (s *Snapshot) ready() *Snapshot {
	rest := *s
	rest.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n *Node) bool { return !n.Initialized })
	return &rest
}

// without is the snapshot as if some nodes, named by Key, were on their way out.
func (s *Snapshot) without(keys map[string]bool) *Snapshot {
	rest := *s
	rest.Nodes = slices.Clone(s.Nodes)
	for i, n := range rest.Nodes {
		if keys[n.Key()] {
			going := *n
			going.Deleting = true
			rest.Nodes[i] = &going
		}
	}
	return &rest
}

func keysOf(nodes []*Node) map[string]bool {
	keys := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		keys[n.Key()] = true
	}
	return keys
}

func hasVirtual(pods []*Pod) bool {
	for _, pod := range pods {
		if pod.Virtual {
			return true
		}
	}
	return false
}
