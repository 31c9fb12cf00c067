package ec2sim

import (
	"fmt"
	"strings"
	"time"
)

// fleet is an answered CreateFleet request; an instant fleet is kept only as a record.
type fleet struct {
	ID        string
	Tags      map[string]string
	CreatedAt time.Time
	Instances []string
}

// EC2's quotas for instant fleets.
const (
	maxFleetOverrides = 300
	maxFleetCapacity  = 10000
	maxClientToken    = 64
)

// newFleetID returns a fleet id in EC2's form: fleet- and a UUID.
func newFleetID() string {
	a, b := newID("x")[2:], newID("x")[2:]
	return strings.ToLower(fmt.Sprintf("fleet-%s-%s-%s-%s-%s", a[:8], a[8:12], a[12:16], b[:4], b[4:16]))
}
