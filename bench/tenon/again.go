package tenon

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/plan"
)

// changes is how many times a cluster is looked at again.
const changes = 30

// Again is what it costs to look again at a cluster in which one pod has come or gone since.
type Again struct {
	// Took is the median with what the look before has left in memory, FromScratch that of looks without memory.
	Took, FromScratch time.Duration
	// Held are the nodes that are kept so that nothing is to be done.
	Held int
	// Commands are those of all looks together: what one pod more or less makes possible.
	Commands int
}

// LookAgain holds the nodes that could go, until nothing is to be done, and then looks time and again, each time after a pod
// has left a node, or has come back to it.
func LookAgain(q *duel.Question) Again {
	in := Input(q)
	in.Held = map[string]plan.Hold{}
	var memory plan.Memory
	for {
		found := memory.Disrupt(in)
		if len(found.Commands) == 0 {
			break
		}
		for _, command := range found.Commands {
			for _, node := range command.Nodes {
				in.Held[node] = plan.Hold{Until: in.Snapshot.Time.Add(time.Hour), Why: "for this measurement"}
			}
		}
	}
	again := Again{Held: len(in.Held)}
	r := rand.New(rand.NewPCG(7, 7))
	var took, scratch []time.Duration
	for range changes / 2 {
		at := r.IntN(len(in.Snapshot.Nodes))
		for len(in.Snapshot.Nodes[at].Pods) == 0 {
			at = r.IntN(len(in.Snapshot.Nodes))
		}
		whole := in.Snapshot.Nodes[at]
		i := r.IntN(len(whole.Pods))
		for _, pods := range [][]*plan.Pod{slices.Delete(slices.Clone(whole.Pods), i, i+1), slices.Clone(whole.Pods)} {
			next := *in.Snapshot
			next.Time, next.Nodes = next.Time.Add(time.Second), slices.Clone(next.Nodes)
			node := *whole
			node.Pods = pods
			next.Nodes[at] = &node
			in.Snapshot = &next
			runtime.GC()
			began := time.Now()
			again.Commands += len(memory.Disrupt(in).Commands)
			took = append(took, time.Since(began))
			if len(scratch) < 5 {
				runtime.GC()
				began = time.Now()
				plan.Disrupt(in)
				scratch = append(scratch, time.Since(began))
			}
		}
	}
	slices.Sort(took)
	slices.Sort(scratch)
	again.Took, again.FromScratch = took[len(took)/2], scratch[len(scratch)/2]
	return again
}
