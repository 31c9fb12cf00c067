package ec2sim

import (
	"strings"
	"time"
)

// bucket is a token bucket.
type bucket struct {
	tokens float64
	last   time.Time
}

// bucketSize is a bucket's capacity and its refill per second.
type bucketSize struct{ capacity, refill float64 }

// EC2's published request buckets (EC2 developer guide, "Request throttling for the Amazon EC2 API"). Each action has its
// own bucket; the kind of action determines its size.
var (
	readBucket           = bucketSize{100, 20}
	unfilteredReadBucket = bucketSize{50, 10}
	mutatingBucket       = bucketSize{50, 5}
	actionBuckets        = map[string]bucketSize{
		"RunInstances":       {5, 2},
		"CreateFleet":        {5, 2}, // an instant fleet launches like RunInstances
		"TerminateInstances": {100, 5},
		"CreateTags":         {100, 10},
		"DeleteTags":         {100, 10},
	}
	// launchBucket is the resource bucket for launched instances, shared by the actions that launch.
	launchBucket = bucketSize{1000, 2}
)

func requestBucket(c *call) bucketSize {
	if size, ok := actionBuckets[c.action]; ok {
		return size
	}
	if !strings.HasPrefix(c.action, "Describe") {
		return mutatingBucket
	}
	ids := false
	for key := range c.form.children {
		ids = ids || strings.HasSuffix(key, "Id") || key == "InstanceType"
	}
	if !ids && !c.form.has("Filter") && !c.form.has("MaxResults") && !c.form.has("NextToken") {
		return unfilteredReadBucket
	}
	return readBucket
}

// throttle holds the account's token buckets. A bucket is created full when tokens are first requested from it.
type throttle struct {
	now     func() time.Time
	buckets map[string]*bucket
}

// spend takes tokens from a bucket. If there are not enough, it takes none and returns false. The factor scales the
// refill and, below 1, the capacity: a throttled account has smaller buckets.
func (t *throttle) spend(name string, size bucketSize, factor, tokens float64) bool {
	now := t.now()
	capacity := max(1, size.capacity*min(1, factor))
	b := t.buckets[name]
	if b == nil {
		b = &bucket{tokens: capacity, last: now}
		t.buckets[name] = b
	}
	b.tokens = min(capacity, b.tokens+max(0, now.Sub(b.last).Seconds())*size.refill*factor)
	b.last = now
	if b.tokens < tokens {
		return false
	}
	b.tokens -= tokens
	return true
}

// request takes a token for a request to EC2, if throttling is on, and returns false if there is none. Other services are
// not throttled.
func (t *throttle) request(c *call, factor float64) bool {
	if factor <= 0 || c.service != "ec2" {
		return true
	}
	return t.spend("request/"+c.action, requestBucket(c), factor, 1)
}
