package main

import (
	"sync"
	"time"
)

const (
	// longest is how long a run may take before it is stopped and cleaned up; the cost of every instance is counted for that
	// long.
	longest = time.Hour
	// reservedFor is after what time the capacity reservation ends by itself, and maxReservedFor how long it may cost
	// something: EC2 ends it "within an hour from the specified time" (API reference, CreateCapacityReservation, EndDate).
	reservedFor    = longest
	maxReservedFor = reservedFor + time.Hour
	// publicAddress is the price of a public IPv4 address per hour, in US dollars (Amazon VPC pricing).
	publicAddress = 0.005
	// actionMinute is the price of a minute of a FIS action, in US dollars (AWS FIS pricing); experimentMinutes is how many
	// are counted for an interruption that takes two.
	actionMinute      = 0.10
	experimentMinutes = 5
	// planDisk is the price that the plan assumes for the volumes of one instance per hour, in US dollars: 20 GiB of gp3.
	planDisk = 0.0023
)

// cost returns what a step costs at most, in the currency of the region's prices.
func (s step) cost(instanceHour, diskHour float64) float64 {
	hours := longest.Hours()
	return float64(s.instances)*(instanceHour+diskHour+publicAddress)*hours +
		float64(s.reserved)*instanceHour*maxReservedFor.Hours() + float64(s.actionMinutes)*actionMinute
}

// atMost returns what steps cost together at most. A step that replays a token counts as if it launched once more.
func atMost(steps []step, instanceHour, diskHour float64) float64 {
	total := 0.0
	for _, s := range steps {
		total += s.cost(instanceHour, diskHour)
	}
	return total
}

// ledger records which instances ran for how long.
type ledger struct {
	now func() time.Time

	mu        sync.Mutex
	instances map[string]*entry
}

type entry struct {
	hour         float64 // its price
	began, ended time.Time
}

func newLedger(now func() time.Time) *ledger {
	return &ledger{now: now, instances: map[string]*entry{}}
}

// began records an instance that was launched; a known one stays unchanged.
func (l *ledger) began(id string, hour float64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.instances[id] == nil {
		l.instances[id] = &entry{hour: hour, began: at}
	}
}

// ended records that an instance is gone.
func (l *ledger) ended(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.instances[id]; e != nil && e.ended.IsZero() {
		e.ended = l.now()
	}
}

// sum returns how many instances there were, for how long together, and what they cost. EC2 bills at least a minute.
func (l *ledger) sum() (instances int, together time.Duration, cost float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.instances {
		end := e.ended
		if end.IsZero() {
			end = l.now()
		}
		ran := max(end.Sub(e.began), time.Minute)
		together += ran
		cost += ran.Hours() * (e.hour + publicAddress)
	}
	return len(l.instances), together, cost
}
