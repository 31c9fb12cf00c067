package architecture

import (
	"go/types"
	"slices"
	"strings"
)

// An arrow leads from a file to another one of its package that it uses.
type arrow struct{ from, to string }

// arrows returns the pairs of files of which the first uses a function, method, type, variable or constant of the second.
func (s *Source) arrows() map[arrow]bool {
	arrows := map[arrow]bool{}
	for id, o := range s.info.Uses {
		if o.Pkg() == nil || o.Pkg().Path() != s.Path {
			continue
		}
		method, isFunc := o.(*types.Func)
		if o.Parent() != o.Pkg().Scope() && !(isFunc && method.Signature().Recv() != nil) {
			continue
		}
		if from, to := s.file(id.Pos()), s.file(o.Pos()); from != to {
			arrows[arrow{from, to}] = true
		}
	}
	return arrows
}

// declaredOrder returns the names of the files that the package comment lists after "Reading order:"; nil if it lists none.
func (s *Source) declaredOrder() []string {
	var order []string
	for _, file := range s.files {
		if file.Doc == nil {
			continue
		}
		_, list, found := strings.Cut(file.Doc.Text(), "Reading order:")
		if list, _, _ = strings.Cut(list, "\n\n"); found {
			for _, name := range strings.Fields(list) {
				order = append(order, strings.Trim(name, ",.")+".go")
			}
		}
	}
	return order
}

// readingOrder returns the declared order, or else the best that is found.
func (s *Source) readingOrder(arrows map[arrow]bool) []string {
	if declared := s.declaredOrder(); declared != nil {
		return declared
	}
	return bestOrder(arrows, s.names())
}

// BestOrder returns the package's files, without their extension, in the order against which the fewest arrows were found to
// run.
func (s *Source) BestOrder() []string {
	arrows := s.arrows()
	order := bestOrder(arrows, s.readingOrder(arrows))
	for i, name := range order {
		order[i] = strings.TrimSuffix(name, ".go")
	}
	return order
}

// against returns the arrows that run against an order in which a file uses only what comes before it.
func against(arrows map[arrow]bool, order []string) []string {
	place := map[string]int{}
	for i, name := range order {
		place[name] = i
	}
	var back []string
	for a := range arrows {
		if place[a.from] < place[a.to] {
			back = append(back, a.from+" → "+a.to)
		}
	}
	slices.Sort(back)
	return back
}

// bestOrder looks for an order with fewer arrows against it, by moving one file at a time to where the fewest run back.
func bestOrder(arrows map[arrow]bool, order []string) []string {
	best := slices.Clone(order)
	for moved := true; moved; {
		moved = false
		for _, name := range order {
			from := slices.Index(best, name)
			// Moving a file past another one changes only the arrows between the two.
			gain, least, to := 0, 0, from
			for at := from - 1; at >= 0; at-- {
				if gain += passing(arrows, name, best[at]); gain < least {
					least, to = gain, at
				}
			}
			gain = 0
			for at := from + 1; at < len(best); at++ {
				if gain -= passing(arrows, name, best[at]); gain < least {
					least, to = gain, at
				}
			}
			if to != from {
				best = slices.Insert(slices.Delete(best, from, from+1), to, name)
				moved = true
			}
		}
	}
	return best
}

// passing returns how many more arrows run back if a file comes before the other one instead of after it.
func passing(arrows map[arrow]bool, name, other string) int {
	more := 0
	if arrows[arrow{name, other}] {
		more++
	}
	if arrows[arrow{other, name}] {
		more--
	}
	return more
}
