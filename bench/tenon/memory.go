package tenon

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/plan"
)

// Peak returns by how many bytes the memory of this process rises while it plans, garbage included: what a worker needs
// beside the mirror of its cluster.
func Peak(q *compare.Question) (int64, error) {
	in := Input(q)
	debug.FreeOSMemory()
	idle, err := resident()
	if err != nil {
		return 0, err
	}
	done, most := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(time.Millisecond)
		defer ticks.Stop()
		peak := idle
		for {
			if now, err := resident(); err == nil {
				peak = max(peak, now)
			}
			select {
			case <-done:
				most <- peak
				return
			case <-ticks.C:
			}
		}
	}()
	plan.Pack(in)
	close(done)
	return <-most - idle, nil
}

// resident returns the resident memory of this process, in bytes.
func resident() (int64, error) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("asking for the memory in use: %w", err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(data), &size, &pages); err != nil {
		return 0, fmt.Errorf("reading /proc/self/statm: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}
