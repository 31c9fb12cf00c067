package starter

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// kindsEvery is how often at most Disruption is woken only so that its details tell what keeps nodes.
const kindsEvery = 10 * time.Minute

// kinds are the reasons and causes for which nodes were kept when Disruption was last woken to write them down.
type kinds struct {
	mark uint64
	at   time.Time
}

// changed says that nodes are kept for other kinds of reason than Disruption has written down, often enough for
// people who read it and seldom enough to cost nothing. What passes by itself is no news.
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
