package kwok

import (
	"slices"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// unavailableFor is how long an offering counts as unavailable after it was refused.
const unavailableFor = 3 * time.Minute

// offers is the catalogue, with what was refused lately.
type offers struct {
	catalogue []*cloud.InstanceType

	mu      sync.Mutex
	refused map[cloud.OfferingKey]time.Time // until when
	// current is the catalogue with refused offerings marked; nil if it has to be made again.
	current []*cloud.InstanceType
}

func newOffers(catalogue []*cloud.InstanceType) *offers {
	return &offers{catalogue: catalogue, refused: map[cloud.OfferingKey]time.Time{}}
}

// refuse marks an offering as unavailable for a while.
func (o *offers) refuse(key cloud.OfferingKey, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused[key] = now.Add(unavailableFor)
	o.current = nil
}

// types returns the instance types as they can be launched now. They are the same values until something changes.
func (o *offers) types(now time.Time) []*cloud.InstanceType {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, until := range o.refused {
		if !now.Before(until) {
			delete(o.refused, key)
			o.current = nil
		}
	}
	if o.current == nil {
		for _, typ := range o.catalogue {
			marked := *typ
			marked.Offerings = slices.Clone(typ.Offerings)
			for i := range marked.Offerings {
				_, refused := o.refused[marked.Offerings[i].Key(typ)]
				marked.Offerings[i].Available = !refused
			}
			o.current = append(o.current, &marked)
		}
	}
	return slices.Clone(o.current)
}

// find returns the type and the offering of a key, and false if there is none that is available.
func (o *offers) find(key cloud.OfferingKey, now time.Time) (*cloud.InstanceType, cloud.Offering, bool) {
	for _, typ := range o.types(now) {
		if typ.Name != key.InstanceType {
			continue
		}
		for _, offering := range typ.Offerings {
			if offering.Key(typ) == key && offering.Available {
				return typ, offering, true
			}
		}
	}
	return nil, cloud.Offering{}, false
}
