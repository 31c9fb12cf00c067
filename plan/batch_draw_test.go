package plan_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/offline"
	"github.com/tenon-sh/tenon/plan"
)

// ec2 are the virtual machines of EC2 as the AWS provider sizes and prices them, in three zones.
var ec2 = sync.OnceValues(func() (types []*cloud.InstanceType, err error) {
	account, err := offline.New(offline.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, account.Close()) }()
	types, _, err = account.InstanceTypes(context.Background(), &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class-default", Generation: 1},
		Spec:       awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}},
	})
	return slices.DeleteFunc(types, func(t *cloud.InstanceType) bool { return strings.Contains(t.Name, ".metal") }), err
})

// families are the families that most clusters choose from.
var families = []string{"c5", "m5", "r5", "m5a", "r5b", "c5n", "c6i", "m6i", "r6i", "c6a", "m6a", "r6a", "c6g", "m6g", "r6g",
	"c7i", "m7i", "r7i", "c7a", "m7a", "r7a", "c7g", "m7g", "r7g"}

// batch is a world with waiting pods and no running ones: Deployments as clusters have them, and some of EC2's
// machines.
type batch struct {
	*world
	nominates bool
}

func (b batch) input() plan.Input {
	in := b.world.input()
	in.Nominates = b.nominates
	return in
}

// on returns the same batch with other machines.
func (b batch) on(types []*cloud.InstanceType) batch {
	w := *b.world
	w.pools = slices.Clone(w.pools)
	for i := range w.pools {
		w.pools[i].Types = types
	}
	return batch{&w, b.nominates}
}

// drawBatch draws up to about 400 pods of up to 180 Deployments, with few sizes or as many as there are Deployments,
// and with rules about hosts and zones; one to eight families of machines, on demand or with spot, in up to three
// zones; and the packing.
func drawBatch(t *rapid.T, nominates bool) batch {
	w := &world{bound: map[string][]*corev1.Pod{}}
	all, err := ec2()
	if err != nil {
		t.Fatal(err)
	}
	chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(families), 1, 8, rapid.ID[string]).Draw(t, "families")
	spot, inZones := rapid.Bool().Draw(t, "spot"), rapid.IntRange(1, 3).Draw(t, "zones")
	types := only(all, func(typ *cloud.InstanceType, o cloud.Offering) bool {
		return slices.Contains(chosen, typ.Labels["karpenter.k8s.aws/instance-family"]) && slices.Contains(threeZones[:inZones], o.Zone) &&
			(spot || o.CapacityType == "on-demand")
	})
	w.pools = []plan.Pool{{
		NodePool: nodePool("default"), Types: types,
		Packing:   rapid.SampledFrom([]plan.Packing{plan.PackingCheapest, plan.PackingSpread}).Draw(t, "packing"),
		NodePrice: rapid.SampledFrom([]float64{0, 0, 0.005}).Draw(t, "price of a node"),
	}}
	for i := range rapid.IntRange(0, 2).Draw(t, "daemonsets") {
		name := fmt.Sprintf("daemon-%d", i)
		w.addDaemonSet(name, newPod(name, "50m", "100Mi", tolerates("")).Spec)
	}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "sizes"), 1))
	sizes := rapid.SampledFrom([]int{3, 12, 200}).Draw(t, "number of sizes")
	asked := make([][2]string, sizes)
	for i := range asked {
		asked[i] = drawSize(r)
	}
	few, apps := rapid.IntRange(1, 12).Draw(t, "replicas"), rapid.IntRange(1, 60).Draw(t, "apps")
	if rapid.IntRange(0, 4).Draw(t, "many apps") == 4 {
		few, apps = 3, 180
	}
	rules := rapid.SliceOfN(rapid.SampledFrom([]string{"none", "soft", "hard", "zone"}), 1, 4).Draw(t, "rules")
	for i := range apps {
		name, size, rule := fmt.Sprintf("app-%03d", i), asked[i%sizes], rules[r.IntN(len(rules))]
		options := []func(*corev1.Pod){app(name)}
		switch rule {
		case "soft":
			options = append(options, wouldAvoid(100, hostname, ""))
		case "hard":
			options = append(options, avoids(hostname, ""))
		case "zone":
			options = append(options, selects(zone, threeZones[r.IntN(inZones)]))
		}
		w.pods = append(w.pods, manyPods(1+r.IntN(few), name, size[0], size[1], options...)...)
	}
	return batch{w, nominates}
}

// drawSize draws cores and memory as if measured: their logarithms are normally distributed.
func drawSize(r *rand.Rand) [2]string {
	cpu := min(max(400*math.Exp(1.1*r.NormFloat64()), 10), 6000)
	memory := min(max(cpu*2.2*math.Exp(0.9*r.NormFloat64()), 16), 24_000)
	return [2]string{fmt.Sprintf("%.0fm", cpu), fmt.Sprintf("%.0fMi", memory)}
}

// only returns the types with only the offerings that keep accepts, without types that have none left.
func only(types []*cloud.InstanceType, keep func(*cloud.InstanceType, cloud.Offering) bool) []*cloud.InstanceType {
	var kept []*cloud.InstanceType
	for _, typ := range types {
		copied := *typ
		copied.Offerings = slices.DeleteFunc(slices.Clone(typ.Offerings), func(o cloud.Offering) bool { return !keep(typ, o) })
		if len(copied.Offerings) > 0 {
			kept = append(kept, &copied)
		}
	}
	return kept
}

// total returns the price of a plan in US dollars per hour, including what the pools say a node costs besides its
// machine.
func (b batch) total(p plan.Plan) float64 {
	return p.PricePerHour() + float64(len(p.Claims))*b.pools[0].NodePrice
}

func (b batch) String() string {
	return fmt.Sprintf("%d pods of %d apps, %d types, nominates %t, packing %s, $%g for a node", len(b.pods), len(b.perApp()), len(b.pools[0].Types), b.nominates, b.pools[0].Packing, b.pools[0].NodePrice)
}

// perApp returns the number of pods of each app.
func (b batch) perApp() map[string]int {
	count := map[string]int{}
	for _, pod := range b.pods {
		count[pod.Labels["app"]]++
	}
	return count
}

// fleet lists a plan's nodes by their cheapest type, in readable form.
func fleet(p plan.Plan) string {
	count := map[string]int{}
	for i := range p.Claims {
		count[p.Claims[i].CapacityType+" "+p.Claims[i].InstanceTypes[0]]++
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "\n\t%d × %s", count[name], name)
	}
	return b.String()
}

// fewBatches is the default number of batches a property is checked on, with nomination and without: most have hundreds
// of pods.
const fewBatches = 6

// checkBatches checks a property on some drawn batches, or on as many as the flag -rapid.checks says (make fuzz).
func checkBatches(t *testing.T, property func(t *rapid.T, b batch)) {
	t.Helper()
	most := fewBatches
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "rapid.checks" {
			most = math.MaxInt
		}
	})
	for name, nominates := range map[string]bool{"nominated": true, "not nominated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held, broken := 0, false
			rapid.Check(t, func(t *rapid.T) {
				if held >= most && !broken {
					return // rapid draws what broke it again, in smaller worlds
				}
				holds := false
				defer func() { broken = broken || !holds }()
				b := drawBatch(t, nominates)
				t.Log(b)
				property(t, b)
				held, holds = held+1, !t.Failed()
			})
		})
	}
}
