package worker

import (
	"os"
	"runtime/debug"

	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
)

const (
	// programSize is what the garbage collector does not count: the program's text, of which so much is in use. heapShare is
	// the part of the limit that both together may take, and minHeap the part that the garbage collector works towards
	// where the text would leave too little: the kernel can drop text and read it again.
	programSize = 96 << 20
	heapShare   = 0.95
	minHeap     = 0.5
	// workflowShare is the part of the limit that workflows may take which are kept in memory between two of their tasks.
	// Most are those of nodes that serve, to which nothing happens for days.
	workflowShare = 0.06
	// workflowSize is what one of them takes: measured for NodeClaims that serve, which are most of them.
	workflowSize = 40 << 10
	// minMemory is about what a worker of an empty cluster takes. A limit below it is a mistake, such as 512 for 512Mi.
	minMemory = 64 << 20
	// maxWorkflows is Temporal's own limit. minWorkflows are enough for what happens at once in a small cluster.
	maxWorkflows, minWorkflows = 10_000, 500
)

// memory is how a worker divides the memory it may use. A workflow that is not kept costs time, not correctness: its
// history is read again when something happens to it.
type memory struct {
	// heap is what the garbage collector works towards, in bytes; zero where nothing bounds it.
	heap int64
	// workflows is how many are kept.
	workflows int
}

// memoryWithin divides a limit in bytes; zero is none.
func memoryWithin(limit int64) memory {
	if limit <= 0 {
		return memory{workflows: maxWorkflows}
	}
	share := func(of float64) int64 { return int64(of * float64(limit)) }
	return memory{heap: max(share(heapShare)-programSize, share(minHeap)), workflows: int(min(max(share(workflowShare)/workflowSize, minWorkflows), maxWorkflows))}
}

// LimitMemory has this process keep within Config.MemoryLimit. It is called before Run. A person's GOMEMLIMIT stands.
func (c *Config) LimitMemory(log *zap.Logger) {
	m := memoryWithin(c.MemoryLimit.Value())
	if m.heap > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(m.heap)
	}
	sdk.SetStickyWorkflowCacheSize(m.workflows)
	log.Info("memory", zap.Stringer("limit", &c.MemoryLimit), zap.Int64("heap", debug.SetMemoryLimit(-1)), zap.Int("workflowsKept", m.workflows))
}
