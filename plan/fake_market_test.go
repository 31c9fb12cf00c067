package plan_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

func fakeMarket() []*cloud.InstanceType {
	var types []*cloud.InstanceType
	for i := range 400 {
		n := float64(i + 1)
		types = append(types, machineSpec{name: fmt.Sprintf("f%d.x", i+1), cores: n, memory: 2 * n, pods: int64(10 * (i + 1)), price: 0.15 * n}.instanceType())
	}
	return types
}

func TestFake(t *testing.T) {
	types := fakeMarket()
	if os.Getenv("REAL") != "" {
		types = realCatalogue(t)
	}
	for _, n := range []int{500, 1000, 5000} {
		w := world{pods: diverse(rand.New(rand.NewPCG(1, 2)), n), pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: types}}}
		in := w.input()
		in.Nominates = true
		began := time.Now()
		p := plan.Pack(in)
		t.Logf("%d pods: %v, %d claims, %d unplaced, $%.2f", n, time.Since(began), len(p.Claims), len(p.Unplaced), p.PricePerHour())
	}
}
