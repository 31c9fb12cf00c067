package starter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// kindsEvery is the minimum interval between signals that wake Disruption only to update its details about what keeps
// nodes.
const kindsEvery = 10 * time.Minute

// kinds are the reasons and causes that kept nodes when Disruption was last woken to write them down.
type kinds struct {
	mark uint64
	at   time.Time
}

// changed says whether the kinds of reason that keep nodes differ from those that Disruption has written down, at most
// once every kindsEvery: often enough for readers, and too seldom to cost much. Reasons that pass by themselves do not
// count.
func (k *kinds) changed(found plan.Disruption, now time.Time) bool {
	var all []string
	for _, verdict := range found.Verdicts {
		switch verdict.Cause {
		case plan.CauseNone, plan.CauseLeaving, plan.CauseNominated, plan.CauseQuiet:
			continue
		}
		if kind := fmt.Sprint(verdict.Reason, " ", verdict.Cause); !slices.Contains(all, kind) {
			all = append(all, kind)
		}
	}
	slices.Sort(all)
	mark := uint64(0)
	if len(all) > 0 {
		mark = markOf(strings.Join(all, ","))
	}
	if mark == k.mark || now.Sub(k.at) < kindsEvery {
		return false
	}
	k.mark, k.at = mark, now
	return true
}
