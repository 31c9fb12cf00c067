package world

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// maxPace limits how much slower than an idle machine this machine is assumed to be.
const maxPace = 6

// pace returns how many times longer things take at present than on an idle machine: the load average of the last minute per
// processor, or one if it is not known.
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

// Patience returns how long to wait at present for something that takes at most limit on an idle machine.
func Patience(limit time.Duration) time.Duration {
	return time.Duration(pace() * float64(limit))
}

// patience counts how much of a limit has passed; a minute on a busy machine counts less than a minute.
type patience struct {
	limit, spent time.Duration
	at           time.Time
}

func newPatience(limit time.Duration) *patience { return &patience{limit: limit, at: time.Now()} }

// paceEvery is how often patience reads the load, which costs more than most of what is waited for.
const paceEvery = time.Second

// over reports whether the limit has passed.
func (p *patience) over() bool {
	now := time.Now()
	if since := now.Sub(p.at); since >= min(paceEvery, p.limit) {
		p.spent += time.Duration(float64(since) / pace())
		p.at = now
	}
	return p.spent > p.limit
}
