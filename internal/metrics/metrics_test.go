package metrics

import "testing"

func TestEveryMetricOfKarpentersHasOneRow(t *testing.T) {
	t.Parallel()
	if err := Check(); err != nil {
		t.Fatal(err)
	}
	for _, m := range All() {
		if (m.By == Nobody) != (m.Verdict == Meaningless || m.Verdict == Missing) {
			t.Errorf("%s: exported by %q with the verdict %q", m.Name, m.By, m.Verdict)
		}
		if m.Verdict != Same && m.Verdict != Own && m.Note == "" {
			t.Errorf("%s is %s, and nothing says why", m.Name, m.Verdict)
		}
		if m.By != Nobody && m.Help == "" {
			t.Errorf("%s has no help", m.Name)
		}
		if m.By != Nobody && (m.Kind == Histogram) != (m.Buckets != nil) {
			t.Errorf("%s is a %s and has %d buckets", m.Name, m.Kind, len(m.Buckets))
		}
	}
}
