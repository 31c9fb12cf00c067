package ec2sim

import (
	"fmt"
	"strings"
	"time"
)

// fleet is a CreateFleet request that was answered; an instant fleet stays as a record only.
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

// newFleetID spells a fleet id like EC2: a UUID whose groups are told apart by dashes.
func newFleetID() string {
	a, b := newID("x")[2:], newID("x")[2:]
	return strings.ToLower(fmt.Sprintf("fleet-%s-%s-%s-%s-%s", a[:8], a[8:12], a[12:16], b[:4], b[4:16]))
}
