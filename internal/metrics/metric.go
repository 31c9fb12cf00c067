package metrics

// Kind is the type of a metric.
type Kind string

// The types, in the words of Prometheus.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// By says which workers export a metric.
type By string

const (
	// Leader means that only the worker that holds the Lease exports it, as with Karpenter: it describes the cluster, and no sum
	// over workers counts anything twice.
	Leader By = "leader"
	// Every means that each worker exports what it has done or seen itself. Counters and histograms of several workers add up.
	Every By = "every"
	// Nobody exports a metric that is missing or has no meaning.
	Nobody By = ""
)

// Verdict says how a metric compares with Karpenter's of the same name.
type Verdict string

// The verdicts.
const (
	Same        Verdict = "same"
	Different   Verdict = "different"
	Meaningless Verdict = "meaningless"
	// Missing has a meaning here, and is not exported yet.
	Missing Verdict = "missing"
	// Own is a metric that Karpenter does not have.
	Own Verdict = "own"
)

// Metric is one metric.
type Metric struct {
	Name string
	Kind Kind
	// Stability is Karpenter's word for how stable the metric is; empty for Tenon's own.
	Stability string
	// Labels are in no order that matters.
	Labels []string
	// Help is one sentence for people, which Prometheus shows as well. It is empty for a metric without a meaning.
	Help string
	// Buckets are the upper bounds of a histogram, in the unit of the metric.
	Buckets []float64
	By      By
	Verdict Verdict
	// Note says in what it differs from Karpenter's, or why it has no meaning.
	Note string
}

// row is a metric as the tables of this package write it. Type, labels and stability of Karpenter's metrics are those of
// karpenter.txt.
type row struct {
	name    string
	by      By
	help    string
	verdict Verdict
	note    string
	buckets []float64
	// kind and labels are for Tenon's own metrics only.
	kind   Kind
	labels string
}
