package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// Explain says, for each pool, why it cannot serve the remaining pods of a pod group. It does this once for all of
// them. The pool that came nearest is first: what a pool can never do for a pod is further away than what it cannot do
// now.
func Explain(m *market.Market, it *PodGroup) []model.Reason {
	if it.Refusal != "" {
		return []model.Reason{{Message: it.Refusal}}
	}
	if len(m.Sellers) == 0 {
		return []model.Reason{{Message: "there is no NodePool"}}
	}
	var reasons []model.Reason
	near := map[string]barrierKind{}
	for _, s := range m.Sellers {
		r := model.Reason{NodePool: s.Name}
		r.Message, near[s.Name] = obstacle(m, it, s)
		reasons = append(reasons, r)
	}
	slices.SortFunc(reasons, func(a, b model.Reason) int {
		return cmp.Or(-cmp.Compare(near[a.NodePool], near[b.NodePool]), strings.Compare(a.NodePool, b.NodePool))
	})
	return reasons
}

// obstacle says what keeps a pool from serving a pod group.
func obstacle(m *market.Market, it *PodGroup, s *market.Seller) (string, barrierKind) {
	if s.Closed != "" {
		return s.Closed, closedKind(m, it, s)
	}
	if taint := model.RepelledBy(s.NodePool.Spec.Template.Spec.Taints, it.Class.Tolerations); taint != nil {
		return fmt.Sprintf("taint %s is not tolerated", taint.ToString()), notTolerated
	}
	// With several alternatives, the one that came nearest to a node says the most.
	why, nearest := "", notTolerated
	for _, t := range it.terms {
		sentence, kind := obstacleTo(m, it, s, t.Normalized())
		switch {
		case sentence == "" && it.Unmet != "":
			return it.Unmet, unexplained // machines would do; other pods are in the way
		case sentence != "" && kind >= nearest:
			why, nearest = sentence, kind
		}
	}
	switch {
	case why != "":
		return why, nearest
	case it.Devices.Allocates():
		return "other pods have the devices that its resource claims could be allocated", unexplained
	case len(s.Minimums) > 0:
		return "no choice of machines that fits it meets the pool's minValues and limits", unexplained
	}
	return "no offering that fits it could be launched", unexplained
}

// closedKind says how near a closed pool came. It looks only at what the pool's nodes have whatever is bought.
func closedKind(m *market.Market, it *PodGroup, s *market.Seller) barrierKind {
	fits := func(t model.Term) bool {
		t = t.Normalized()
		return contradiction(s, t) == "" && !slices.ContainsFunc(t, func(c model.Condition) bool {
			value, fixed := s.Labels[c.Key]
			return s.Open[c.Key] == nil && (fixed || !m.WellKnown.Has(c.Key)) && !c.Admits(value, fixed)
		})
	}
	switch {
	case model.RepelledBy(s.NodePool.Spec.Template.Spec.Taints, it.Class.Tolerations) != nil || !slices.ContainsFunc(it.terms, fits):
		return unfitPool
	case s.ClosedForNow:
		return heldPool
	}
	return closedPool
}

// obstacleTo says what keeps all of a pool's machines from a pod group with one of its terms; empty if that is not
// known. It prefers an obstacle that would remain even if nothing of the pool's limits were used, because that says
// more.
func obstacleTo(m *market.Market, it *PodGroup, s *market.Seller, t model.Term) (string, barrierKind) {
	if key := contradiction(s, t); key != "" {
		return fmt.Sprintf("no value of %s meets all its requirements", key), byLabel
	}
	used := slices.ContainsFunc(s.Budget, func(a market.Allowance) bool { return a.Left < a.Limit })
	for _, whole := range slices.Compact([]bool{used, false}) {
		o := obstaclesFor(m, it, s, t, whole)
		if conflict := o.conflict(); len(conflict) > 0 {
			return o.sentence(conflict), conflict[len(conflict)-1].kind
		}
	}
	return "", unexplained
}

// contradiction returns the first label that the pool leaves to the pods and for which the term leaves no value; empty
// if there is none.
func contradiction(s *market.Seller, t model.Term) string {
	for _, key := range model.SortedKeys(s.Open) {
		asked := t.About(key)
		if _, _, ok := append(slices.Clip(s.Open[key]), asked...).Resolve(); len(asked) > 0 && !ok {
			return key
		}
	}
	return ""
}

// sentence describes a conflict in one short sentence.
func (o *obstacles) sentence(conflict []*barrier) string {
	last := conflict[len(conflict)-1]
	rest := conflict[:slices.IndexFunc(conflict, func(b *barrier) bool { return b.kind == last.kind })]
	phrase := o.describe(conflict)
	switch last.kind {
	case byLimit:
		return o.limitSentence(rest, conflict[len(rest):], phrase)
	case byReservation:
		return o.reservationSentence(rest)
	case byAvailability:
		return phrase.none("is", "available "+o.until(rest))
	case byMinValues:
		return o.minValuesSentence(rest, phrase)
	case byDevices:
		return "every " + phrase.subject() + " has devices, which are kept for pods that ask for them"
	case byBareMetal:
		return "every " + phrase.subject() + " is bare metal, which is launched only where nothing else would do"
	case byPorts:
		return "a DaemonSet takes its host ports on every " + phrase.subject()
	case byRoom:
		return o.roomSentence(rest, conflict[len(rest):])
	case byClaims:
		return o.claimsSentence(rest)
	}
	if len(conflict) == 1 {
		return o.labelSentence(last.condition) + o.excluding(conflict)
	}
	return phrase.none("", "") + o.excluding(conflict)
}

// excluding continues a sentence about labels with what the node class has to do with it; empty if that is nothing.
func (o *obstacles) excluding(conflict []*barrier) string {
	var asked model.Term
	for _, b := range conflict {
		if b.condition == nil || !o.s.OfType(o.m, b.condition.Key) {
			return ""
		}
		asked = append(asked, *b.condition)
	}
	return o.s.Excluding(o.m, asked, "")
}

// labelSentence describes a condition that no machine of the pool meets.
func (o *obstacles) labelSentence(c *model.Condition) string {
	value, defined := o.s.Labels[c.Key]
	own := model.ConditionsOf(o.s.NodePool.Spec.Template.Spec.Requirements).About(c.Key)
	_, _, compatible := append(slices.Clip(own), *c).Resolve()
	switch {
	case c.Key == corev1.LabelHostname:
		return fmt.Sprintf("%s can be met only by a node that exists", c)
	case defined:
		return fmt.Sprintf("%s is not met: the pool's nodes have %q", c, value)
	case !o.m.WellKnown.Has(c.Key) && !o.m.Zonal(c.Key) && o.s.Open[c.Key] == nil:
		return fmt.Sprintf("%s is not met: the pool does not define the label", c)
	case len(own) > 0 && !compatible:
		return fmt.Sprintf("the pool requires %s", own)
	case zonesNamed(c) != "":
		return "nothing is offered in " + zonesNamed(c)
	case o.m.Zonal(c.Key):
		return fmt.Sprintf("nothing is offered with %s", c)
	}
	return fmt.Sprintf("no instance type has %s", c)
}

// roomSentence describes machines that are too small, or lack a device.
func (o *obstacles) roomSentence(rest, rooms []*barrier) string {
	p := o.describe(rest)
	if len(rooms) > 1 {
		p = o.describe(slices.Concat(rest, rooms))
		return p.none("", "")
	}
	dim := rooms[0].dim
	name, most := o.m.Dims.Name(dim), int64(0)
	for i := range o.passing(rest) {
		most = max(most, o.m.Machines[i].Usable[dim])
	}
	switch {
	case most == 0 && dim >= market.DimExtended:
		return p.none("has", name) + o.s.Excluding(o.m, nil, name)
	case len(rest) == 0:
		return fmt.Sprintf("%s is more than any instance type leaves for pods (%s)", o.asked(dim), model.Quantity(name, most))
	}
	return p.none("has", fmt.Sprintf("%s free, the most is %s", o.asked(dim), model.Quantity(name, most)))
}

// claimsSentence says which of a pod's resource claims finds no devices on the machines that would do otherwise.
func (o *obstacles) claimsSentence(rest []*barrier) string {
	rooms := map[string]*devices.Room{}
	for i := range o.passing(rest) {
		rooms[o.m.Machines[i].Typ.Name] = o.m.NewDevices(i)
	}
	return devices.Explain(&o.it.Devices, rooms)
}

// asked says how much of a resource a pod requests.
func (o *obstacles) asked(dim int) string {
	name := o.m.Dims.Name(dim)
	return name + " " + model.Quantity(name, o.it.Request[dim])
}

// limitSentence names the limit, what is left of it where that matters, and the least that would have to be left.
func (o *obstacles) limitSentence(rest, limits []*barrier, p phrase) string {
	name, said := limits[0].limit.Name, []string(nil)
	for _, b := range limits {
		text := b.limit.String()
		if o.whole {
			text = fmt.Sprintf("limit %s %s is too little", b.limit.Name, model.Quantity(b.limit.Name, b.limit.Limit))
		}
		said = append(said, text)
	}
	switch {
	case len(said) > 1:
		return fmt.Sprintf("%s, and no %s keeps to all of them", model.List(said, "and"), p.subject())
	case name == string(karpv1.ResourceNodes):
		return said[0]
	}
	least := int64(math.MaxInt64)
	for i := range o.passing(rest) {
		least = min(least, market.CountOf(name, o.m.Machines[i].Size))
	}
	return fmt.Sprintf("%s, and the smallest %s has %s", said[0], p.subject(), model.Quantity(name, max(0, least)))
}

func (o *obstacles) reservationSentence(rest []*barrier) string {
	ids := map[string]bool{}
	for i := range o.passing(rest) {
		ids[o.m.ReservedBy(i)] = true
	}
	if len(ids) > 1 {
		return fmt.Sprintf("none of its %d capacity reservations has room left", len(ids))
	}
	return fmt.Sprintf("capacity reservation %s is used up", slices.Collect(maps.Keys(ids))[0])
}

// minValuesSentence names the first minimum that is not met.
func (o *obstacles) minValuesSentence(rest []*barrier, p phrase) string {
	tally := market.NewTally(o.m, o.s.Minimums)
	for i := range o.passing(rest) {
		tally.Add(i)
	}
	i := 0
	for len(tally.Seen[i]) >= o.s.Minimums[i].Count {
		i++
	}
	missed := o.s.Minimums[i]
	return fmt.Sprintf("minValues asks for %d values of %s, and only %d have any %s", missed.Count, missed.Key, len(tally.Seen[i]), p.subject())
}

// until says when the first of the refused offerings may be asked for again, as far as that is known.
func (o *obstacles) until(rest []*barrier) string {
	var shut uint64
	for _, b := range rest {
		shut |= b.shut
	}
	var first time.Time
	for i := range o.passing(rest) {
		mach := &o.m.Machines[i]
		key := mach.Key()
		key.ReservationID = o.m.ReservedBy(i)
		for _, key.Zone = range o.m.ZoneNames(mach.Offered &^ shut) {
			if until := o.m.Unavailable[key]; o.m.Now.Before(until) && (first.IsZero() || until.Before(first)) {
				first = until
			}
		}
	}
	if first.IsZero() {
		return "at the moment"
	}
	return "until " + first.UTC().Format("15:04:05 UTC")
}

// phrase is a kind of machine in words, and its place: "zone us-west-2c" has no "spot c7g with memory 64Gi free".
type phrase struct{ place, kind string }

// wordy is the number of values up to which a condition is put into words; more are easier to read as the condition
// itself.
const wordy = 3

// describe puts the labels, zones and rooms of a conflict into words.
func (o *obstacles) describe(conflict []*barrier) phrase {
	place, noun := "", "instance type"
	var adjectives, with, rooms []string
	for _, b := range conflict {
		c := b.condition
		short := c != nil && c.Operator == corev1.NodeSelectorOpIn && len(c.Values) <= wordy
		switch {
		case b.kind == byRoom:
			rooms = append(rooms, o.asked(b.dim))
		case c == nil:
		case place == "" && zonesNamed(c) != "":
			place = zonesNamed(c)
		case short && (c.Key == karpv1.CapacityTypeLabelKey || c.Key == corev1.LabelArchStable):
			adjectives = append(adjectives, model.List(c.Values, "or"))
		case short && (c.Key == corev1.LabelInstanceTypeStable || c.Key == o.m.Keys.Family) && noun == "instance type":
			noun = model.List(c.Values, "or")
		default:
			with = append(with, c.String())
		}
	}
	if len(rooms) > 0 {
		with = append(with, model.List(rooms, "and")+" free")
	}
	kind := strings.Join(append(adjectives, noun), " ")
	if len(with) > 0 {
		kind += " with " + model.List(with, "and")
	}
	return phrase{place, kind}
}

// zonesNamed returns the zones that a condition names, if they are few; empty otherwise.
func zonesNamed(c *model.Condition) string {
	switch {
	case c.Key != corev1.LabelTopologyZone || c.Operator != corev1.NodeSelectorOpIn || len(c.Values) > wordy:
		return ""
	case len(c.Values) == 1:
		return "zone " + c.Values[0]
	}
	return "zones " + model.List(c.Values, "and")
}

// subject returns the machine and its place.
func (p *phrase) subject() string {
	if p.place != "" {
		return p.kind + " in " + p.place
	}
	return p.kind
}

// none says that no such machine "is" or "has" a quality, or without a quality that there is none at all.
func (p *phrase) none(verb, quality string) string {
	switch {
	case p.place == "" && quality == "":
		return "there is no " + p.kind
	case p.place == "":
		return "no " + p.kind + " " + verb + " " + quality
	}
	text := p.place + " has no " + p.kind
	if strings.HasPrefix(p.place, "zones ") {
		text = p.place + " have no " + p.kind
	}
	switch {
	case quality == "":
		return text
	case verb == "has":
		return text + " with " + quality
	}
	return text + " " + quality
}
