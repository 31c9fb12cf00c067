package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenon-sh/tenon/plan"
)

func BenchmarkPack(b *testing.B) {
	catalogue := realCatalogue(b)
	for _, count := range []int{1000, 5000, 10000} {
		b.Run(fmt.Sprintf("pods=%d", count), func(b *testing.B) {
			r := rand.New(rand.NewPCG(7, 7))
			w := world{
				pods: shaped(r, count, []string{"100m", "250m", "500m", "1", "1500m"},
					[]string{"100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"}),
				pools: []plan.Pool{{NodePool: nodePool("default"), Types: catalogue}},
			}
			in := w.input()
			b.ReportAllocs()
			for b.Loop() {
				plan.Pack(in)
			}
			b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}
