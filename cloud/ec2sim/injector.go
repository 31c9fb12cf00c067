package ec2sim

import (
	"fmt"
	"math/rand/v2"
	"path"
	"time"
)

// injector holds the current faults and decides when they strike.
type injector struct {
	now      func() time.Time
	row      *table[Faults]
	hits     map[string]int // times a counted fault has struck
	throttle *throttle
}

// faultsID is the id of the only row of the fault table.
const faultsID = "faults"

// current returns the current faults.
func (in *injector) current() *Faults { return in.row.rows[faultsID] }

// set replaces all faults and resets their counts and the throttle's buckets.
func (in *injector) set(f *Faults) {
	in.row.put(faultsID, f)
	clear(in.hits)
	clear(in.throttle.buckets)
}

// strikes decides whether a fault strikes now, and counts it. kind and n identify the fault.
func (in *injector) strikes(o Occurrence, kind string, n int) bool {
	key := path.Join(kind, fmt.Sprint(n))
	if o.Times > 0 && in.hits[key] >= o.Times || o.Probability > 0 && rand.Float64() >= o.Probability {
		return false
	}
	in.hits[key]++
	return true
}

// faultPlan is the set of faults that affect one request.
type faultPlan struct {
	refusal *apiError
	lost    bool
	delay   time.Duration
}

// plan decides which faults affect a call, and when it is answered.
func (in *injector) plan(c *call) faultPlan {
	f := in.current()
	var plan faultPlan
	if !in.throttle.request(c, f.Throttle) {
		plan.refusal = errThrottled
		return plan
	}
	for n, e := range f.Errors {
		if wildcard(e.Action, c.action) && in.strikes(e.Occurrence, "error", n) {
			plan.refusal = e.refusal()
			return plan
		}
	}
	for n, l := range f.Lost {
		if !plan.lost && l.matches(c) {
			plan.lost = in.strikes(l.Occurrence, "lost", n)
		}
	}
	for n, l := range f.Slow {
		if plan.delay == 0 && l.matches(c) && in.strikes(l.Occurrence, "slow", n) {
			plan.delay = time.Duration(l.Delay)
		}
	}
	c.answeredAt = c.at.Add(plan.delay)
	return plan
}

// poolRefuses returns why a pool gives nothing, or nil. Reserved capacity is refused only while its zone is out.
func (in *injector) poolRefuses(p pool, reserved bool) error {
	f := in.current()
	for _, z := range f.ZonesOut {
		if wildcard(z, p.zone) {
			return noCapacity(p, "")
		}
	}
	if reserved {
		return nil // reserved capacity does not run out
	}
	for n, fault := range f.Capacity {
		if fault.matches(p) && in.hits[capacityKey(n)] >= fault.Remaining {
			return noCapacity(p, fault.Code)
		}
	}
	return nil
}

func capacityKey(n int) string { return fmt.Sprintf("capacity/%d", n) }

// poolTaken counts an instance against the remaining capacity of its pool.
func (in *injector) poolTaken(p pool) {
	for n, fault := range in.current().Capacity {
		if fault.matches(p) {
			in.hits[capacityKey(n)]++
		}
	}
}

func noCapacity(p pool, code string) error {
	setDefault(&code, "InsufficientInstanceCapacity")
	switch code {
	case "InsufficientInstanceCapacity":
		if p.capacityType == capacitySpot {
			return refuse(code, "There is no Spot capacity available that matches your request.")
		}
		return refuse(code, "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s). Our system will be working on provisioning additional capacity.", p.instanceType, p.zone)
	case "VcpuLimitExceeded":
		return refuse(code, "You have requested more vCPU capacity than your current vCPU limit allows for the instance bucket that the specified instance type belongs to.")
	}
	return refuse(code, "The pool %s in %s gives nothing.", p.instanceType, p.zone)
}

// bootFaults applies the boot faults to a new instance, which boots from an image.
func (in *injector) bootFaults(i *instance, im *image, now time.Time) {
	f, p := in.current(), i.pool()
	for n, fault := range f.NeverRegister {
		if fault.strikesAt(p, im) && in.strikes(fault.Occurrence, "register", n) {
			i.BootAt, i.ReadyAt = time.Time{}, time.Time{}
		}
	}
	for n, fault := range f.NeverReady {
		if fault.strikesAt(p, im) && in.strikes(fault.Occurrence, "ready", n) {
			i.ReadyAt = time.Time{}
		}
	}
	for n, fault := range f.Die {
		if fault.strikesAt(p, im) && in.strikes(fault.Occurrence, "die", n) {
			i.DieAt = now.Add(time.Duration(fault.After))
		}
	}
}

// late reports whether something created at made is still invisible, given a lag.
func (in *injector) late(lag Duration, made time.Time) bool {
	return lag > 0 && in.now().Before(made.Add(time.Duration(lag)))
}

// spendLaunches takes n launches from the token bucket. Throttle's factor does not apply to this bucket: it limits the
// number of launched instances, not the number of requests.
func (in *injector) spendLaunches(n int) error {
	if in.current().Throttle <= 0 || in.throttle.spend("launch", launchBucket, 1, float64(n)) {
		return nil
	}
	return errThrottled
}
