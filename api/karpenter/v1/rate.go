package v1

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// DisruptionRateMost is the longest time a DisruptionRate may span.
const DisruptionRateMost = 24 * time.Hour

// DisruptionRate bounds how many nodes begin to be disrupted within a time, as "30%/10m" or "5/1h" says it.
//
// +kubebuilder:object:generate=false
type DisruptionRate struct {
	// Nodes is a number of nodes, or a percentage of those there are, rounded up as in budgets.
	Nodes intstr.IntOrString
	// Within is the time, at most DisruptionRateMost.
	Within time.Duration
}

var rateNodes = regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]{1,6})$`)

// ParseDisruptionRate reads a rate. An error says what is expected.
func ParseDisruptionRate(text string) (DisruptionRate, error) {
	nodes, within, found := strings.Cut(text, "/")
	duration, err := time.ParseDuration(within)
	if !found || err != nil || !rateNodes.MatchString(nodes) || duration <= 0 || duration > DisruptionRateMost {
		return DisruptionRate{}, fmt.Errorf("%q must be nodes and a time of at most %s, such as 30%%/10m or 5/1h", text, DisruptionRateMost)
	}
	return DisruptionRate{Nodes: intstr.Parse(nodes), Within: duration}, nil
}

// DisruptionRate is the pool's, by its annotation DisruptionRateAnnotationKey; nil where it has none.
func (in *NodePool) DisruptionRate() (*DisruptionRate, error) {
	text, some := in.Annotations[DisruptionRateAnnotationKey]
	if !some {
		return nil, nil
	}
	rate, err := ParseDisruptionRate(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", DisruptionRateAnnotationKey, err)
	}
	return &rate, nil
}

// Most is how many of a number of nodes may begin to be disrupted within the time.
func (r DisruptionRate) Most(nodes int) int {
	most, err := intstr.GetScaledValueFromIntOrPercent(&r.Nodes, nodes, true)
	if err != nil {
		return 0 // only what ParseDisruptionRate has not seen
	}
	return most
}

// Begun are nodes that began to be disrupted at a moment.
//
// +kubebuilder:object:generate=false
type Begun struct {
	Nodes int
	At    time.Time
}

// Left returns how many of a number of nodes may begin to be disrupted now, and when more may, zero for never;
// Unbounded where there is no rate.
func (r *DisruptionRate) Left(nodes int, begun []Begun, now time.Time) (left int, opens time.Time) {
	if r == nil {
		return Unbounded, time.Time{}
	}
	left, opens = r.Most(nodes), now.Add(r.Within)
	for _, b := range begun {
		if until := b.At.Add(r.Within); until.After(now) {
			left -= b.Nodes
			if until.Before(opens) {
				opens = until
			}
		}
	}
	if r.Most(nodes) == 0 {
		opens = time.Time{}
	}
	return max(0, left), opens
}
