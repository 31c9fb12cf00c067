package disrupt

import (
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// rates holds what nodes cost: the instance types by the names of the pool and the type.
type rates map[[2]string]*cloud.InstanceType

func newRates(pools []model.Pool) rates {
	r := rates{}
	for _, pool := range pools {
		for _, typ := range pool.Types {
			r[[2]string{pool.NodePool.Name, typ.Name}] = typ
		}
	}
	return r
}

// of returns what a node costs now, in US dollars per hour. It is not known for a type, a zone or a capacity type that the
// node's pool cannot buy (any more).
func (r rates) of(n *model.Node) (price float64, known bool) {
	typ := r[[2]string{n.Pool, n.InstanceType}]
	if typ == nil {
		return 0, false
	}
	reservation := n.Labels[awsv1.LabelCapacityReservationID]
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
