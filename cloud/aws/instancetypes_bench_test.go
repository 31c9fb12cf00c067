package aws_test

import "testing"

// BenchmarkInstanceTypes measures a planner's call when nothing has changed since the last one.
func BenchmarkInstanceTypes(b *testing.B) {
	a := newAccountWith(b, "")
	class := a.NodeClass()
	a.resolve(a.provider, class)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.provider.InstanceTypes(b.Context(), class); err != nil {
			b.Fatal(err)
		}
	}
}
