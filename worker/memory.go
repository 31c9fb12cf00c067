package worker

import (
	"os"
	"runtime/debug"

	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"
)

const (
	// programSize is what the garbage collector does not count: the part of the program's text that is in use, in bytes.
	// heapShare is the share of the limit that text and heap may take together. minHeap is the share that the garbage
	// collector aims for if the text would leave too little: the kernel can drop text and read it again.
	programSize = 96 << 20
	heapShare   = 0.95
	minHeap     = 0.5
	// workflowShare is the share of the limit for workflows that are kept in memory between two of their tasks. Most of them
	// belong to serving nodes, to which nothing happens for days.
	workflowShare = 0.06
	// workflowSize is what one of them takes, in bytes: measured for NodeClaims of serving nodes, which are most of them.
	workflowSize = 40 << 10
	// minMemory is roughly what a worker of an empty cluster takes. A limit below it is a mistake, such as 512 for 512Mi.
	minMemory = 64 << 20
	// maxWorkflows is Temporal's own limit. minWorkflows are enough for what happens at once in a small cluster.
	maxWorkflows, minWorkflows = 10_000, 500
)

// memory is how a worker divides the memory it may use. A workflow that is not kept costs time, not correctness: its
// history is read again when something happens to it.
type memory struct {
	// heap is the garbage collector's target in bytes; zero means no limit.
	heap int64
	// workflows is how many workflows are kept.
	workflows int
}

// memoryWithin divides a limit in bytes; zero means no limit.
func memoryWithin(limit int64) memory {
	if limit <= 0 {
		return memory{workflows: maxWorkflows}
	}
	share := func(of float64) int64 { return int64(of * float64(limit)) }
	return memory{heap: max(share(heapShare)-programSize, share(minHeap)), workflows: int(min(max(share(workflowShare)/workflowSize, minWorkflows), maxWorkflows))}
}

// LimitMemory keeps this process within Config.MemoryLimit. Call it before Run. It does not override a GOMEMLIMIT that a
// person has set.
func (c *Config) LimitMemory(log *zap.Logger) {
	m := memoryWithin(c.MemoryLimit.Value())
	if m.heap > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(m.heap)
	}
	sdk.SetStickyWorkflowCacheSize(m.workflows)
	log.Info("memory", zap.Stringer("limit", &c.MemoryLimit), zap.Int64("heap", debug.SetMemoryLimit(-1)), zap.Int("workflowsKept", m.workflows))
}
