package disrupt

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// rates holds what nodes cost.
type rates struct {
	// types are by the names of the pool and the type.
	types map[[2]string]*cloud.InstanceType
	// reservation is the label with the capacity reservation of a node.
	reservation string
}

func newRates(in *model.Input) rates {
	r := rates{types: map[[2]string]*cloud.InstanceType{}, reservation: in.Snapshot.LabelKeys.ReservationID}
	for _, pool := range in.Pools {
		for _, typ := range pool.Types {
			r.types[[2]string{pool.NodePool.Name, typ.Name}] = typ
		}
	}
	return r
}

// of returns what a node costs now, in US dollars per hour. It is not known for a type, a zone or a capacity type that the
// node's pool cannot buy (any more).
func (r rates) of(n *model.Node) (price float64, known bool) {
	typ := r.types[[2]string{n.Pool, n.InstanceType}]
	if typ == nil {
		return 0, false
	}
	reservation := n.Labels[r.reservation]
	for i := range typ.Offerings {
		o := &typ.Offerings[i]
		if o.Zone != n.Zone || o.CapacityType != n.CapacityType {
			continue
		}
		price, known = o.Price, true
		if o.CapacityType != karpv1.CapacityTypeReserved || o.ReservationID == reservation {
			break
		}
	}
	return price, known
}
