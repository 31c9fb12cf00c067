package plan

import (
	"encoding/binary"
	"slices"
)

// demand is lots that are alike to the market: they take the same room and accept the same machines. A buyer knows
// nothing finer; which pods go where is decided when the machines are bought.
type demand struct {
	request  []int64
	ports    []HostPort
	variants []variant
	// most is how many of its pieces one machine takes for reasons other than room; zero if room alone counts.
	most int
	lots []*lot
	// wanted is how many pieces there are when a buyer begins.
	wanted int
}

// stocked is a demand and the machines it may be bought now.
type stocked struct {
	*demand
	stock bitset
}

// supplied is a lot and the machines it may be bought now.
type supplied struct {
	*lot
	stock bitset
	// quota is how many pieces of it are to be bought now.
	quota int
}

// demandsOf brings alike lots together. The order is that of the first lot of each.
func (m *market) demandsOf(lots []supplied) []stocked {
	bounds := m.boundaryOf(lots)
	byKey := map[string]int{}
	var demands []stocked
	for _, l := range lots {
		left := min(l.left(), l.quota)
		if left == 0 {
			continue
		}
		request, most := bounds.of(&l)
		key := string(l.key(request, most))
		i, known := byKey[key]
		if !known {
			i = len(demands)
			byKey[key] = i
			demands = append(demands, stocked{&demand{request: request, ports: l.ports, variants: slices.Clone(l.variants), most: most}, l.stock})
		}
		demands[i].lots = append(demands[i].lots, l.lot)
		demands[i].wanted += left
	}
	return demands
}

// key is equal for lots that are alike to the market. Lots of equal size and bound are one demand; bundles and lots with host ports are like no other.
func (l *lot) key(request []int64, most int) []byte {
	key := make([]byte, 0, 256)
	for _, amount := range request {
		key = binary.AppendVarint(key, amount)
	}
	key = binary.AppendVarint(key, int64(most))
	if l.bundle || len(l.ports) > 0 {
		key = binary.AppendVarint(append(key, '!'), int64(l.place))
	}
	for i := range l.variants {
		v := &l.variants[i]
		key = binary.LittleEndian.AppendUint64(append(key, '|'), v.zones)
		for _, word := range v.machines {
			key = binary.LittleEndian.AppendUint64(key, word)
		}
		for j := range v.custom {
			key = appendString(key, v.custom[j].id())
		}
	}
	return key
}

// pieces is how many pieces are left.
func (d *demand) pieces() int {
	n := 0
	for _, l := range d.lots {
		n += l.left()
	}
	return n
}

// allows says how many of n pieces may join a bin for reasons other than room.
func (l *lot) allows(b *bin, n int) int {
	if !l.bundle {
		if b.tally != nil {
			n = l.rules.hostAllows(b.tally, n)
		}
		return b.attach.holds(l.attach, n)
	}
	room := b.attach.clone()
	for i := range l.content {
		p := &l.content[i]
		attach := &p.it.volumes.attach
		if p.as.rules.hostAllows(b.tally, len(p.pods)) < len(p.pods) || room.holds(attach, len(p.pods)) < len(p.pods) {
			return 0
		}
		room.put(attach, len(p.pods))
	}
	return min(n, 1)
}

// draw takes n pieces for a bin.
func (l *lot) draw(b *bin, n int) []*Pod {
	if !l.bundle {
		p := &l.content[0]
		taken := p.pods[:n:n]
		p.pods = p.pods[n:]
		if b.tally != nil {
			l.rules.count(b.tally, n)
		}
		b.attach.put(l.attach, n)
		return taken
	}
	var taken []*Pod
	for i := range l.content {
		p := &l.content[i]
		p.as.rules.count(b.tally, len(p.pods))
		b.attach.put(&p.it.volumes.attach, len(p.pods))
		taken = append(taken, p.pods...)
		p.pods = nil
	}
	return taken
}

// company is how much a lot minds what else is on its node. Those that mind most are placed first: the emptier a node,
// the more of them it takes.
type company int

const (
	mindsPods company = iota
	mindsZone
	mindsNothing
)

func (m *market) companyFor(l *lot, variant int) company {
	switch {
	case l.bundle || l.rules.ruledByHost() || !l.attach.none():
		return mindsPods
	case m.allZones&^l.variants[variant].zones != 0:
		return mindsZone
	}
	return mindsNothing
}

// fillUp puts up to n pieces of the demand onto a bin that has room for them, as far as the company they mind allows,
// and returns how many found their way.
func (m *market) fillUp(b *bin, d *demand, variant, n int, minding company) int {
	var pods []*Pod
	done := 0
	for done < n {
		var chosen *lot
		most, allowed := 0, 0
		for _, l := range d.lots {
			left := l.left()
			if left <= most || l.variants[variant].zones&b.zones == 0 || m.companyFor(l, variant) != minding {
				continue
			}
			if k := l.allows(b, min(left, n-done)); k > 0 {
				chosen, most, allowed = l, left, k
			}
		}
		if chosen == nil {
			break
		}
		pods = append(pods, chosen.draw(b, allowed)...)
		b.zones &= chosen.variants[variant].zones
		done += allowed
	}
	if done > 0 {
		b.account(d, variant, done)
		b.add(portion{variant: &d.variants[variant], request: d.request, count: done, pods: pods})
	}
	return done
}

// add brings portions of one demand together.
func (b *bin) add(p portion) {
	i := slices.IndexFunc(b.content, func(other portion) bool { return other.variant == p.variant })
	if i < 0 {
		b.content = append(b.content, p)
		return
	}
	b.content[i].count += p.count
	b.content[i].pods = append(b.content[i].pods, p.pods...)
}
