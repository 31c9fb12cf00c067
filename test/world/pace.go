package world

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// maxPace bounds how much slower a machine is taken to be.
const maxPace = 6

// pace is how many times as long as on a machine with nothing else to do things take at present: what wants to run, over
// the last minute, for each processor. Where that is not known it is one.
func pace() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 1
	}
	return min(max(load/float64(runtime.NumCPU()), 1), maxPace)
}

// Patience is how long to wait at present for what takes so long at most on a machine with nothing else to do.
func Patience(limit time.Duration) time.Duration {
	return time.Duration(pace() * float64(limit))
}

// patience counts how much of a limit has been waited for, a minute on a busy machine for less than one.
type patience struct {
	limit, spent time.Duration
	at           time.Time
}

func newPatience(limit time.Duration) *patience { return &patience{limit: limit, at: time.Now()} }

// over says whether the limit has been waited for.
func (p *patience) over() bool {
	now := time.Now()
	p.spent += time.Duration(float64(now.Sub(p.at)) / pace())
	p.at = now
	return p.spent > p.limit
}
