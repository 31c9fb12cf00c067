package view

import (
	"slices"
	"time"
)

const (
	// sampleEvery is how often a Ledger keeps what the cluster costs, and sampleMost is how many samples it keeps: those of a
	// day.
	sampleEvery = 5 * time.Minute
	sampleMost  = 24 * 60 / 5
)

// Sample is what the cluster cost at one moment.
type Sample struct {
	At      time.Time `json:"at"`
	PerHour float64   `json:"perHour"`
}

// Cost is what the cluster costs, what it cost before, and what was saved.
type Cost struct {
	// Currency is USD, or CNY in China.
	Currency string  `json:"currency"`
	PerHour  float64 `json:"perHour"`
	// OnDemand is what the same nodes would cost on demand.
	OnDemand float64 `json:"onDemand"`
	// Unpriced counts the nodes whose price is not known, such as those that are not launched yet.
	Unpriced int `json:"unpriced,omitempty"`
	// Saved is the sum per hour of what the listed decisions have saved since SavedSince.
	Saved      float64   `json:"saved"`
	SavedSince time.Time `json:"savedSince,omitzero"`
	// History has a sample for every five minutes of the last day, as far as this worker has run.
	History []Sample `json:"history,omitempty"`
}

// Ledger remembers what the cluster cost during the last day. The zero Ledger is empty.
type Ledger struct{ samples []Sample }

// Add keeps a sample if the last one is old enough, and returns the samples. A slice that it has returned does not change.
func (l *Ledger) Add(at time.Time, perHour float64) []Sample {
	if n := len(l.samples); n > 0 && at.Sub(l.samples[n-1].At) < sampleEvery {
		return l.samples
	}
	l.samples = append(slices.Clone(l.samples[max(0, len(l.samples)-sampleMost+1):]), Sample{at, perHour})
	return l.samples
}

// saved sums what decisions save, and says since when. Only decisions that were carried out count.
func saved(decisions []*Decision) (sum float64, since time.Time) {
	for _, d := range decisions {
		if since.IsZero() || d.At.Before(since) {
			since = d.At
		}
		if d.Outcome == OutcomeCompleted {
			sum += d.SavesPerHour
		}
	}
	return sum, since
}

// OutcomeCompleted is the Outcome of a decision that was carried out.
const OutcomeCompleted = "Completed"

func (c Cost) equal(other Cost) bool {
	history := len(c.History) == len(other.History) && (len(c.History) == 0 || c.History[len(c.History)-1] == other.History[len(other.History)-1])
	return history && c.Currency == other.Currency && c.PerHour == other.PerHour && c.OnDemand == other.OnDemand && c.Unpriced == other.Unpriced &&
		c.Saved == other.Saved && c.SavedSince.Equal(other.SavedSince)
}
