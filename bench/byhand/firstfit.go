package byhand

import (
	"cmp"
	"math"
	"slices"
	"strings"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// claim is a node being planned: the sum of its pods' requests, and the machines it may still become, the cheapest first.
type claim struct {
	asks  amounts
	left  []*machine
	most  amounts
	apps  map[string]bool
	kinds map[int]bool
}

func (c *claim) price() float64 { return least(c.left) }

// firstFit puts each pod into the first claim that one machine can still hold, or into a new claim. Each claim becomes its
// cheapest machine. It returns false if a pod fits nowhere.
func firstFit(machines []*machine, pods []*pod) ([]*claim, bool) {
	var claims []*claim
	for _, p := range pods {
		if slices.ContainsFunc(claims, func(c *claim) bool { return c.take(p) }) {
			continue
		}
		c := &claim{left: machines, most: amounts{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}, apps: map[string]bool{}, kinds: map[int]bool{}}
		if !c.take(p) {
			return nil, false
		}
		claims = append(claims, c)
	}
	return claims, true
}

func (c *claim) take(p *pod) bool {
	asks := c.asks.plus(p.asks)
	if !asks.within(c.most) || p.apart && c.apps[p.app] {
		return false
	}
	known := c.kinds[p.kind]
	holds := func(m *machine) bool { return asks.within(m.free) && (known || p.may(m)) }
	if !slices.ContainsFunc(c.left, holds) {
		return false
	}
	left := make([]*machine, 0, len(c.left))
	most := amounts{}
	for _, m := range c.left {
		if holds(m) {
			left = append(left, m)
			for i := range most {
				most[i] = max(most[i], m.free[i])
			}
		}
	}
	c.asks, c.left, c.most, c.kinds[p.kind] = asks, left, most, true
	if p.apart {
		c.apps[p.app] = true
	}
	return true
}

// oneType returns the price of the cheapest fleet of machines of one type, and the type's name; zero if no type takes all
// pods. It skips types that would be dearer even if pods were divisible. It also skips bare metal, which both Karpenter and
// Tenon launch only where nothing else will do.
func oneType(machines []*machine, pods []*pod) (price float64, name string) {
	byName, order := map[string][]*machine{}, []string{}
	for _, m := range machines {
		if strings.HasPrefix(m.labels[awsv1.LabelInstanceSize], "metal") {
			continue
		}
		if byName[m.name] == nil {
			order = append(order, m.name)
		}
		byName[m.name] = append(byName[m.name], m)
	}
	total := amounts{}
	for _, p := range pods {
		total = total.plus(p.asks)
	}
	atLeast := func(name string) float64 {
		m, nodes := byName[name][0], 1.0
		for i, amount := range total {
			if amount > 0 {
				nodes = max(nodes, math.Ceil(float64(amount)/float64(max(m.free[i], 1))))
			}
		}
		return nodes * m.price
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(atLeast(a), atLeast(b)) })
	for _, candidate := range order {
		if price > 0 && atLeast(candidate) >= price {
			break
		}
		claims, fits := firstFit(byName[candidate], pods)
		if !fits {
			continue
		}
		sum := 0.0
		for _, c := range claims {
			sum += c.price()
		}
		if price == 0 || sum < price {
			price, name = sum, candidate
		}
	}
	return price, name
}
