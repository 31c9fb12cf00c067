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
}

// demandsOf brings alike lots together. The order is that of the first lot of each.
func demandsOf(lots []supplied) []stocked {
	byKey := map[string]int{}
	var demands []stocked
	for _, l := range lots {
		left := l.left()
		if left == 0 {
			continue
		}
		key := string(l.key())
		i, known := byKey[key]
		if !known {
			i = len(demands)
			byKey[key] = i
			demands = append(demands, stocked{&demand{request: l.request, ports: l.ports, variants: l.variants, most: l.most}, l.stock})
		}
		demands[i].lots = append(demands[i].lots, l.lot)
		demands[i].wanted += left
	}
	return demands
}

// key is equal for lots that are alike to the market. Those that are bounded by themselves are like no other.
func (l *lot) key() []byte {
	key := make([]byte, 0, 256)
	for _, amount := range l.request {
		key = binary.AppendVarint(key, amount)
	}
	if l.bundle || l.most > 0 || len(l.ports) > 0 {
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

// ruled says that the lot's pods mind which others are on their node.
func (l *lot) ruled() bool {
	return l.bundle || l.rules.ruledByHost() || !l.attach.none()
}

// allows says how many of n pieces may join a bin for reasons other than room.
func (l *lot) allows(b *bin, n int) int {
	if !l.bundle {
		if b.tally != nil {
			n = l.rules.hostAllows(b.tally, n)
		}
		return b.attach.holds(l.attach, n)
	}
	for i := range l.content {
		p := &l.content[i]
		if p.as.rules.hostAllows(b.tally, len(p.pods)) < len(p.pods) {
			return 0
		}
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
		taken = append(taken, p.pods...)
		p.pods = nil
	}
	return taken
}

// fillUp puts up to n pieces of the demand onto a bin that has room for them, and returns how many found their way.
// Those that mind their company go first: the emptier a node, the more of them it takes.
func (d *demand) fillUp(b *bin, variant, n int, ruled bool) int {
	var pods []*Pod
	done := 0
	for done < n {
		var chosen *lot
		most, allowed := 0, 0
		for _, l := range d.lots {
			left := l.left()
			if left <= most || l.ruled() != ruled {
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
		done += allowed
	}
	if done > 0 {
		b.account(d, variant, done)
		b.add(portion{from: d, variant: &d.variants[variant], count: done, pods: pods})
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

// times says how many pieces one machine with this room takes.
func (d *demand) times(free []int64) int {
	if n := times(d.request, free); d.most == 0 || n < d.most {
		return n
	}
	return d.most
}
