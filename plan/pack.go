package plan

// Pack decides where the pods that wait for a node go: onto nodes that exist, onto claims in flight, or onto new
// claims. Pods that will have to leave a node which is going away wait as well; nothing is bought for them where a
// Replacement does so, and for pods whose growth is paused.
func Pack(in Input) Plan { return packPaused(in) }

// packAll plans for all pods alike, whoever sees to them.
func packAll(in Input) Plan {
	together := func(byPriority bool) outcome { return pack(&in, order{priority: byPriority}) }
	if !hasVirtual(in.Snapshot.Pending) {
		return fairly(together)
	}
	if first := together(false); !first.limited || !leavesReal(first.Unplaced) {
		return first.Plan
	}
	return fairly(func(byPriority bool) outcome { return pack(&in, order{priority: byPriority, virtualLast: true}) })
}

// pack is one pass: all pods at once, or one after the other in an order. Pods that are spread over hosts count on those
// that are there, unless something is bought: a new host is emptier than all of them.
func pack(in *Input, by order) outcome {
	by.alone = true
	if alone, leans := packOnce(in, by); !leans || len(alone.Claims) == 0 {
		return alone
	}
	by.alone = false
	packed, _ := packOnce(in, by)
	return packed
}

// packOnce is one pass under one view of the hosts, and says whether it leans on that view.
func packOnce(in *Input, by order) (packed outcome, leans bool) {
	d := survey(in, by.priority)
	d.t.alone = by.alone
	byMoney := func() {}
	if by.priority {
		byMoney = d.m.priceByLimits()
	}
	var bins []*bin
	for _, tier := range tiersOf(d.items, by) {
		d.distribute(tier)
		bins = d.m.buy(bins, d.lots)
		for d.again(tier) {
			bins = d.m.buy(bins, d.lots)
		}
		d.intoSpareRoom(tier, bins)
	}
	byMoney()
	bins = d.audit(in.Snapshot, bins)
	result := Plan{Placements: d.placements, Claims: d.m.claims(bins)}
	for _, it := range d.items {
		if len(it.pods) == 0 {
			continue
		}
		reasons := d.m.explain(it)
		for _, pod := range it.pods {
			result.Unplaced = append(result.Unplaced, Unplaced{Pod: pod, Reasons: reasons})
		}
	}
	return outcome{Plan: result, limited: d.m.limitMet, lowest: lowestPriority(bins)}, d.t.leans
}

// survey finds out what waits, what it asks for, what there is and what can be bought.
func survey(in *Input, byPriority bool) *distribution {
	book, t := in.Snapshot.volumes(), newTopology(in.Snapshot.Namespaces)
	pods := waiting(in.Snapshot)
	items := itemsOf(in, book, t, pods, byPriority)
	m := marketFor(in, items)
	m.book, m.hosts = book, t.hosts
	if len(t.groups) > 0 {
		t.survey(in.Snapshot, pods)
	}
	sizes := map[workload]int{}
	for _, pod := range pods {
		if pod.OwnerName != "" {
			sizes[workloadOf(pod)]++
		}
	}
	for _, it := range items {
		it.countWorkloads(sizes)
		m.batch += len(it.pods)
		m.weigh(it)
		if len(it.variants) > 0 {
			take(m.asked, it.request, -len(it.pods))
		}
	}
	home := map[*Pod]*item{}
	for _, it := range items {
		for _, pod := range it.pods {
			home[pod] = it
		}
	}
	d := newDistribution(m, t, items, home, pods, m.slotsOf(book, t))
	d.now = in.Snapshot.Time
	return d
}

// distribute places items on the nodes that are there or on their way, and makes lots of the rest.
func (d *distribution) distribute(items []*item) {
	for _, virtual := range [...]bool{false, true} {
		d.keepPromises(items, virtual)
		order := inOrder(items, virtual)
		for _, it := range order {
			d.place(it)
		}
		for d.retry(order) {
			// What was placed meanwhile may be what others had to wait for.
		}
	}
}

// retry places once more what rules about other pods kept from a place, and says whether that helped.
func (d *distribution) retry(items []*item) bool {
	helped := false
	for _, it := range items {
		if left := len(it.pods); left > 0 && !it.rules.empty() {
			d.place(it)
			helped = helped || len(it.pods) < left
		}
	}
	return helped
}

// again makes new lots of what could not be bought, for pods that may go to another domain or have a preference to give
// up.
func (d *distribution) again(items []*item) bool {
	elsewhere := map[*item]bool{}
	for _, l := range d.lots {
		if l.left() > 0 {
			if p := l.content[0]; !l.bundle && len(l.at) > 0 && p.as == p.it.shape {
				p.as.barred = append(p.as.barred, l.at)
				elsewhere[p.it] = true
			}
			d.giveBack(l)
		}
	}
	d.lots = nil
	for _, it := range items {
		switch {
		case it.refusal != "" || len(it.pods) == 0:
		case elsewhere[it]:
			d.place(it)
		case it.relax():
			d.m.weigh(it)
			d.place(it)
		}
	}
	return len(d.lots) > 0
}

func marketFor(in *Input, items []*item) *market { return newMarket(in, dimensionsOf(in, items)) }

func dimensionsOf(in *Input, items []*item) *dimensions {
	var classes []*Class
	for _, it := range items {
		classes = append(classes, it.class)
	}
	for _, set := range in.Snapshot.DaemonSets {
		classes = append(classes, set.Class)
	}
	return newDimensions(classes, capsOf(items)...)
}

// waiting are the pods that need a place: those the kube-scheduler found none for, and those on nodes that are going
// away and have to move now.
func waiting(snapshot *Snapshot) []*Pod {
	pods, _ := snapshot.WaitingForNode()
	for _, n := range snapshot.Nodes {
		if !n.Deleting && !n.Disrupted {
			continue
		}
		for _, pod := range n.Pods {
			if at, moves := pod.MovesAt(n.EndsAt, snapshot.Time); moves && !at.After(snapshot.Time) {
				pods = append(pods, pod)
			}
		}
	}
	return pods
}
