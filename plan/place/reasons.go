package place

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Explain says, for each pool, why it cannot serve what is left of a pod group. The work is done once for all its pods.
func Explain(m *market.Market, it *PodGroup) []model.Reason {
	if it.Refusal != "" {
		return []model.Reason{{Message: it.Refusal}}
	}
	if len(m.Sellers) == 0 {
		return []model.Reason{{Message: "there is no NodePool"}}
	}
	type ranked struct {
		model.Reason
		near nearness
	}
	all := make([]ranked, len(m.Sellers))
	for i, s := range m.Sellers {
		why, near := obstacle(m, it, i)
		all[i] = ranked{model.Reason{NodePool: s.Name, Message: why}, near}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(-cmp.Compare(a.near, b.near), strings.Compare(a.NodePool, b.NodePool))
	})
	reasons := make([]model.Reason, len(all))
	for i := range all {
		reasons[i] = all[i].Reason
	}
	return reasons
}

// nearness orders reasons: what a pool will never do for a pod is further than what it cannot do now.
type nearness int

const (
	closedPool nearness = iota
	notTolerated
	byBarrier   // and above, by the kind of the last barrier
	unexplained = byBarrier + nearness(market.ByLimit) + 1
)

// obstacle is what keeps a pool from serving a pod group.
func obstacle(m *market.Market, it *PodGroup, index int) (string, nearness) {
	s := m.Sellers[index]
	if s.Closed != "" {
		return s.Closed, closedPool
	}
	if taint := model.RepelledBy(s.NodePool.Spec.Template.Spec.Taints, it.Class.Tolerations); taint != nil {
		return fmt.Sprintf("taint %s is not tolerated", taint.ToString()), notTolerated
	}
	// With several alternatives, the one that came nearest to a node says the most.
	why, nearest := "nothing that fits it could be bought", market.BarrierKind(-1)
	if len(s.Minimums) > 0 {
		why = "no choice of machines that fits it meets the pool's minValues and limits"
	}
	for _, t := range it.terms {
		t = t.Normalized()
		if key := contradiction(m, s, t); key != "" {
			if nearest < market.ByLabel {
				why, nearest = fmt.Sprintf("no value of %s meets all its requirements", key), market.ByLabel
			}
			continue
		}
		o, chosen, found := conflictOf(m, it, s, t)
		switch {
		case !found && it.Unmet != "":
			return it.Unmet, unexplained // machines would do; it is the other pods
		case !found:
		case o.depth(chosen) >= nearest:
			why, nearest = o.sentence(chosen), o.depth(chosen)
		}
	}
	if nearest < 0 {
		return why, unexplained
	}
	return why, byBarrier + nearness(nearest)
}

// conflictOf finds what stops all machines. What would stop them even if nothing were used up of the pool's limits says
// more than that they are used up.
func conflictOf(m *market.Market, it *PodGroup, s *market.Seller, t model.Term) (*obstacles, selection, bool) {
	if slices.ContainsFunc(s.Budget, func(a market.Allowance) bool { return a.Left < a.Limit }) {
		o := obstaclesFor(m, it, s, t, true)
		if chosen, found := o.conflict(); found {
			return o, chosen, true
		}
	}
	o := obstaclesFor(m, it, s, t, false)
	chosen, found := o.conflict()
	return o, chosen, found
}

// contradiction is the first label the pool leaves to the pods and for which the term leaves no value; empty if none.
func contradiction(m *market.Market, s *market.Seller, t model.Term) string {
	for _, key := range model.SortedKeys(s.Open) {
		all, alone := slices.Clone(s.Open[key]), true
		for i := range t {
			if t[i].Key == key {
				all = append(all, t[i])
				alone = false
			}
		}
		if _, _, ok := all.Resolve(); !alone && !ok {
			return key
		}
	}
	return ""
}

// sentence says in few words what a conflict means.
func (o *obstacles) sentence(chosen selection) string {
	place := bits.Len64(uint64(chosen)) - 1
	last := o.barriers[place]
	rest := chosen &^ (1 << place)
	phrase := o.describe(chosen)
	switch last.kind {
	case market.ByLimit:
		return o.limitSentence(chosen, phrase)
	case market.ByReservation:
		return o.reservationSentence(rest)
	case market.ByAvailability:
		return phrase.none("available" + o.until(rest))
	case market.ByMinValues:
		return o.minValuesSentence(rest, phrase)
	case market.ByDevices:
		return phrase.every("devices, which are kept for pods that ask for them")
	case market.ByBareMetal:
		return "every " + phrase.subject() + " is bare metal, which is bought only where nothing else would do"
	case market.ByPorts:
		if rest == 0 {
			return "a DaemonSet takes its host ports"
		}
		return "a DaemonSet takes its host ports on every " + phrase.subject()
	case market.ByRoom:
		return o.roomSentence(chosen, &last, phrase)
	case market.ByZone:
		if rest == 0 {
			return o.zoneSentence(last.condition)
		}
		return phrase.none("")
	}
	if rest == 0 {
		return o.labelSentence(last.condition)
	}
	return phrase.none("")
}

// without is a selection less the barriers of a kind.
func (o *obstacles) without(chosen selection, kind market.BarrierKind) selection {
	for i := range o.barriers {
		if o.barriers[i].kind == kind {
			chosen &^= 1 << i
		}
	}
	return chosen
}

// labelSentence is about a condition that no machine of the pool meets.
func (o *obstacles) labelSentence(c *model.Condition) string {
	value, defined := o.s.Labels[c.Key]
	switch {
	case c.Key == corev1.LabelHostname:
		return fmt.Sprintf("%s can be met only by a node that exists", c)
	case defined:
		return fmt.Sprintf("%s is not met: the pool's nodes have %q", c, value)
	case !o.m.WellKnown.Has(c.Key) && o.s.Open[c.Key] == nil:
		return fmt.Sprintf("%s is not met: the pool does not define the label", c)
	}
	if own := o.excluded(c); own != nil {
		return fmt.Sprintf("the pool requires %s", own)
	}
	return fmt.Sprintf("no instance type has %s", c)
}

func (o *obstacles) zoneSentence(c *model.Condition) string {
	if own := o.excluded(c); own != nil {
		return fmt.Sprintf("the pool requires %s", own)
	}
	if names := zonesNamed(c); names != "" {
		return "nothing is offered in " + names
	}
	return fmt.Sprintf("nothing is offered with %s", c)
}

// roomSentence is about machines that are too small, or do not have a device at all.
func (o *obstacles) roomSentence(chosen selection, last *barrier, p phrase) string {
	name, asked := o.m.Dims.Name(last.dim), o.it.Request[last.dim]
	if rest := o.without(chosen, market.ByRoom); len(p.rooms) == 1 {
		most := int64(0)
		set, _ := o.passing(rest)
		for i := range o.machines(set) {
			most = max(most, o.m.Machines[i].Usable[last.dim])
		}
		p.rooms = nil
		switch {
		case most == 0 && last.dim >= market.DimExtended:
			return p.none("with " + name)
		case rest == 0:
			return fmt.Sprintf("%s %s is more than any instance type leaves for pods (%s)", name, model.Quantity(name, asked), model.Quantity(name, most))
		}
		return p.none(fmt.Sprintf("with %s %s free, the most is %s", name, model.Quantity(name, asked), model.Quantity(name, most)))
	}
	return p.none("")
}

// saidOf puts a limit into words, with what is left of it where that matters.
func (o *obstacles) saidOf(a *market.Allowance) string {
	if o.whole {
		return fmt.Sprintf("limit %s %s is too little", a.Name, model.Quantity(a.Name, a.Limit))
	}
	return a.String()
}

// limitSentence names the limit, and the least that would have to be left.
func (o *obstacles) limitSentence(chosen selection, p phrase) string {
	var limits []string
	var b *barrier
	for i := range o.barriers {
		if chosen.has(i) && o.barriers[i].kind == market.ByLimit {
			b = &o.barriers[i]
			limits = append(limits, o.saidOf(b.limit))
		}
	}
	switch {
	case len(limits) > 1:
		return fmt.Sprintf("%s, and no %s keeps to all of them", model.List(limits, "and"), p.subject())
	case b.limit.Name == string(karpv1.ResourceNodes):
		return limits[0]
	}
	least := int64(-1)
	set, _ := o.passing(o.without(chosen, market.ByLimit))
	for i := range o.machines(set) {
		if n := market.CountOf(b.limit.Name, o.m.Machines[i].Size); least < 0 || n < least {
			least = n
		}
	}
	return fmt.Sprintf("%s, and the smallest %s has %s", o.saidOf(b.limit), p.subject(), model.Quantity(b.limit.Name, max(0, least)))
}

func (o *obstacles) reservationSentence(rest selection) string {
	ids := map[string]bool{}
	set, _ := o.passing(rest)
	for i := range o.machines(set) {
		ids[o.m.ReservedBy(i)] = true
	}
	names := slices.Sorted(maps.Keys(ids))
	switch {
	case len(names) == 1:
		return fmt.Sprintf("capacity reservation %s is used up", names[0])
	case len(names) > 3:
		return fmt.Sprintf("all %d capacity reservations are used up", len(names))
	}
	return fmt.Sprintf("capacity reservations %s are used up", model.List(names, "and"))
}

// minValuesSentence names the first minimum that is missed.
func (o *obstacles) minValuesSentence(rest selection, p phrase) string {
	tally := market.NewTally(o.m, o.s.Minimums)
	set, _ := o.passing(rest)
	for i := range o.machines(set) {
		tally.Add(i)
	}
	for i, minimum := range o.s.Minimums {
		if len(tally.Seen[i]) < minimum.Count {
			return fmt.Sprintf("minValues asks for %d values of %s, and only %d have any %s", minimum.Count, minimum.Key, len(tally.Seen[i]), p.subject())
		}
	}
	return "too few instance types hold it to meet the pool's minValues"
}

// until is when the first of the offerings that were refused may be asked for again; empty if it is not known.
func (o *obstacles) until(rest selection) string {
	var first time.Time
	set, zones := o.passing(rest)
	for i := range o.machines(set) {
		mach := &o.m.Machines[i]
		key := mach.Key()
		key.ReservationID = o.m.ReservedBy(i)
		for z, name := range o.m.Zones {
			key.Zone = name
			if until, refused := o.m.Unavailable[key]; refused && mach.Offered&zones&(1<<z) != 0 && o.m.Now.Before(until) && (first.IsZero() || until.Before(first)) {
				first = until
			}
		}
	}
	if first.IsZero() {
		return " at the moment"
	}
	return " until " + first.UTC().Format("15:04:05 UTC")
}

// phrase is a kind of machine in words: "zone us-west-2c has no spot c7g with memory 64Gi free".
type phrase struct {
	place      string
	adjectives []string
	noun       string
	with       []string
	rooms      []string
}

// describe puts the labels, zones and rooms of a selection into words.
func (o *obstacles) describe(chosen selection) phrase {
	p := phrase{}
	for i := range o.barriers {
		if !chosen.has(i) {
			continue
		}
		switch b := &o.barriers[i]; b.kind {
		case market.ByLabel, market.ByZone:
			p.qualify(b.condition)
		case market.ByRoom:
			name := o.m.Dims.Name(b.dim)
			p.rooms = append(p.rooms, name+" "+model.Quantity(name, o.it.Request[b.dim]))
		}
	}
	return p
}

// wordy is how many values are put into words; more of them are better read as the condition.
const wordy = 3

func (p *phrase) qualify(c *model.Condition) {
	if c.Operator == corev1.NodeSelectorOpIn && len(c.Values) <= wordy {
		switch {
		case c.Key == corev1.LabelTopologyZone && p.place == "":
			p.place = zonesNamed(c)
			return
		case c.Key == capacityTypeKey || c.Key == corev1.LabelArchStable:
			p.adjectives = append(p.adjectives, model.List(c.Values, "or"))
			return
		case (c.Key == corev1.LabelInstanceTypeStable || c.Key == familyKey) && p.noun == "":
			p.noun = model.List(c.Values, "or")
			return
		}
	}
	p.with = append(p.with, c.String())
}

const (
	capacityTypeKey = karpv1.CapacityTypeLabelKey
	familyKey       = "karpenter.k8s.aws/instance-family"
)

func zonesNamed(c *model.Condition) string {
	if c.Key != corev1.LabelTopologyZone || c.Operator != corev1.NodeSelectorOpIn || len(c.Values) > wordy {
		return ""
	}
	if len(c.Values) == 1 {
		return "zone " + c.Values[0]
	}
	return "zones " + model.List(c.Values, "and")
}

// kind is the machine without its place.
func (p *phrase) kind() string {
	noun := p.noun
	if noun == "" {
		noun = "instance type"
	}
	text := strings.Join(append(slices.Clone(p.adjectives), noun), " ")
	with := slices.Clone(p.with)
	if len(p.rooms) > 0 {
		with = append(with, model.List(p.rooms, "and")+" free")
	}
	if len(with) > 0 {
		text += " with " + model.List(with, "and")
	}
	return text
}

// subject is the machine and its place.
func (p *phrase) subject() string {
	if p.place != "" {
		return p.kind() + " in " + p.place
	}
	return p.kind()
}

// none says that there is no such machine with a further quality.
func (p *phrase) none(quality string) string {
	text := "no " + p.kind()
	if p.place != "" {
		have := "has"
		if strings.HasPrefix(p.place, "zones ") {
			have = "have"
		}
		text = p.place + " " + have + " " + text
	} else if quality == "" {
		text = "there is " + text
	}
	if quality == "" {
		return text
	}
	if p.place == "" {
		quality = sentenceVerb(quality)
	}
	return text + " " + quality
}

// sentenceVerb turns a quality that follows "zone x has no y" into one that follows "no y".
func sentenceVerb(quality string) string {
	if rest, ok := strings.CutPrefix(quality, "with "); ok {
		return "has " + rest
	}
	if strings.HasPrefix(quality, "available") {
		return "is " + quality
	}
	return quality
}

// every says what all such machines have.
func (p *phrase) every(quality string) string { return "every " + p.subject() + " has " + quality }
