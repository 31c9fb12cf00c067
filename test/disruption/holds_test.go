package disruption_test

import (
	"maps"
	"slices"
	"time"
)

// untouched fails the scenario if one of the marked nodes is being removed.
func (p *play) untouched() {
	p.T.Helper()
	for _, l := range p.view.of(p.name) {
		if p.marked[l.claim] && (l.going || l.tainted) {
			p.T.Fatalf("node %s is taken away (%s) although it is to stay", l.node, l.reason)
		}
	}
}

// stays waits until this many nodes serve, and checks that all pods are on nodes that were marked.
func stays(want int) step {
	return func(p *play) {
		p.T.Helper()
		serve(want)(p)
		for _, l := range p.view.of(p.name) {
			if !p.marked[l.claim] {
				p.T.Errorf("node %s was launched although there was room", l.node)
			}
		}
	}
}

// standing checks that no more than most nodes ever served at the same time. A node that is being deleted does not count.
func standing(most int) step {
	return func(p *play) {
		p.T.Helper()
		lives := p.view.of(p.name)
		for _, last := range lives {
			serving := 0
			for _, l := range lives {
				if !last.served.IsZero() && !l.served.IsZero() && !l.served.After(last.served) && (l.left.IsZero() || l.left.After(last.served)) {
					serving++
				}
			}
			if serving > most {
				p.T.Errorf("%d nodes served when %s did, want at most %d", serving, last.node, most)
			}
		}
	}
}

// onlyMarked checks that the pods of a workload are on marked nodes, and unmarks all other nodes.
func onlyMarked(workload string) step {
	return func(p *play) {
		p.T.Helper()
		hosts := p.hosts(workload)
		for _, l := range p.view.of(p.name) {
			switch at := slices.Contains(hosts, l.node); {
			case at && !p.marked[l.claim]:
				p.T.Errorf("%s moved to %s", workload, l.node)
			case !at:
				delete(p.marked, l.claim)
			}
		}
	}
}

// stillOn checks that the pods of a workload are on marked nodes.
func stillOn(workload string) step {
	return on(workload, func(p *play, node string) {
		p.T.Helper()
		if !slices.Contains(p.markedNodes(), node) {
			p.T.Errorf("%s has moved to %s", workload, node)
		}
	})
}

// notBefore checks that no node began to go until this long after the last step that set the time.
func notBefore(after time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		for _, l := range p.view.of(p.name) {
			if !l.began.IsZero() && l.began.Sub(p.at) < after {
				p.T.Errorf("node %s went %s after, want at least %s", l.node, l.began.Sub(p.at), after)
			}
		}
	}
}

// apart checks that nodes began to go one after the other, each at least this long after the previous one. Disruption counts
// from its decision, which becomes visible a moment later.
func apart(least time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		var began []time.Time
		for _, l := range p.view.of(p.name) {
			if !l.began.IsZero() {
				began = append(began, l.began)
			}
		}
		slices.SortFunc(began, time.Time.Compare)
		for i := 1; i < len(began); i++ {
			if between := began[i].Sub(began[i-1]); between < least-seenLate {
				p.T.Errorf("node %d began to go %s after the one before, want at least %s", i+1, between, least)
			}
		}
	}
}

// seenLate is by how much the delays between decision and visibility of two nodes may differ.
const seenLate = 5 * time.Second

// old checks that no marked claim's node began to go before the claim had reached an age.
func old(age time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		for _, l := range p.view.of(p.name) {
			if p.marked[l.claim] && l.began.Sub(l.created) < age {
				p.T.Errorf("node %s went %s after its claim was made, want at least %s", l.node, l.began.Sub(l.created), age)
			}
		}
	}
}

// preSpun checks that every marked node left only after all its replacements served.
func preSpun(p *play) {
	p.T.Helper()
	lives := p.view.of(p.name)
	for _, old := range lives {
		if !p.marked[old.claim] || !old.gone {
			continue
		}
		replacements := 0
		for _, l := range lives {
			if l.replaces == "" || l.replaces != old.replacedBy {
				continue
			}
			if replacements++; l.served.IsZero() || l.served.After(old.left) {
				p.T.Errorf("claim %s left before %s served, which replaces it", old.claim, l.claim)
			}
		}
		if replacements == 0 {
			p.T.Errorf("nothing was launched to replace %s before it left", old.claim)
		}
	}
}

// have checks that every node has one of the values of a label.
func have(key string, values ...string) step {
	return func(p *play) {
		p.T.Helper()
		for _, n := range p.nodes() {
			if !slices.Contains(values, n.Labels[key]) {
				p.T.Errorf("node %s has %s=%s, want one of %v", n.Name, key, n.Labels[key], values)
			}
		}
	}
}

// spread checks that the pods of a workload are spread over the values of their nodes' label in these numbers.
func spread(workload, key string, want ...int) step {
	return func(p *play) {
		p.T.Helper()
		labels, count := map[string]string{}, map[string]int{}
		for _, n := range p.nodes() {
			labels[n.Name] = n.Labels[key]
		}
		for _, pod := range p.pods(workload) {
			count[labels[pod.Spec.NodeName]]++
		}
		if got := slices.SortedFunc(maps.Values(count), func(a, b int) int { return b - a }); !slices.Equal(got, want) {
			p.T.Errorf("the pods of %s are spread %v over %s, want %v", workload, count, key, want)
		}
	}
}

// zoned checks that the pods of a workload are in a zone.
func zoned(workload, zone string) step {
	return on(workload, func(p *play, node string) {
		p.T.Helper()
		for _, n := range p.nodes() {
			if n.Name == node && n.Labels[zoneKey] != zone {
				p.T.Errorf("%s is in %s, want %s", workload, n.Labels[zoneKey], zone)
			}
		}
	})
}

// peak checks the largest number of nodes of the scenario's first NodePool that were disrupted at once.
func peak(want int) step {
	return func(p *play) {
		p.T.Helper()
		if got := p.ledger.Peak(p.pools[0].name(p.name)); got != want {
			p.T.Errorf("at most %d nodes were disrupted at once, want %d", got, want)
		}
	}
}
