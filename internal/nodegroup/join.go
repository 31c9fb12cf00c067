package nodegroup

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/convert"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// join makes one proposal of those that differ only in their names, subnets and limits, and gives each its own name.
func join(all []*proposal) []*proposal {
	var joined []*proposal
	by := map[string]*proposal{}
	for _, p := range all {
		key := p.fingerprint()
		first := by[key]
		if first == nil || p.leftOut || p.failed() || first.failed() {
			joined = append(joined, p)
			if !p.leftOut && !p.failed() {
				by[key] = p
			}
			continue
		}
		first.add(p)
	}
	taken := map[string]bool{}
	for _, p := range joined {
		p.rename(taken)
	}
	return joined
}

// add adds a group that differs only in place and size.
func (p *proposal) add(other *proposal) {
	p.names = append(p.names, other.names...)
	for _, term := range other.class.Spec.SubnetSelectorTerms {
		if !slices.ContainsFunc(p.class.Spec.SubnetSelectorTerms, func(t awsv1.SubnetSelectorTerm) bool { return t.ID == term.ID }) {
			p.class.Spec.SubnetSelectorTerms = append(p.class.Spec.SubnetSelectorTerms, term)
		}
	}
	limits := karpv1.Limits{}
	maps.Copy(limits, p.pool.Spec.Limits)
	for name, amount := range other.pool.Spec.Limits {
		sum := limits[name]
		sum.Add(amount)
		limits[name] = sum
	}
	p.pool.Spec.Limits = limits
	for _, note := range other.notes {
		if !slices.ContainsFunc(p.notes, func(n convert.Note) bool { return n.Field == note.Field && n.Text == note.Text }) {
			p.notes = append(p.notes, note)
		}
	}
}

// rename gives the objects of joined groups the beginning that the names of these have in common, if it is free.
func (p *proposal) rename(taken map[string]bool) {
	name := objectName(p.names[0])
	if len(p.names) > 1 {
		common := p.names[0]
		for _, other := range p.names[1:] {
			for !strings.HasPrefix(other, common) {
				common = common[:len(common)-1]
			}
		}
		if common := objectName(common); common != "" && !taken[common] {
			name = common
		}
		p.changed("", "differs from %s only in place and size: one NodePool takes the place of all, with the subnets and the sum of the limits of each", strings.Join(p.names[1:], ", "))
	}
	for base, n := name, 2; taken[name]; n++ {
		name = base[:min(len(base), maxName-3)] + "-" + strconv.Itoa(n)
	}
	if name != p.names[0] && len(p.names) == 1 && !p.leftOut {
		p.changed("", "the NodePool is named %s", name)
	}
	taken[name] = true
	p.pool.Name, p.class.Name, p.pool.Spec.Template.Spec.NodeClassRef.Name = name, name, name
}
