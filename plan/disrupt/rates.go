package disrupt

import (
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// rates know what nodes cost. Pools with the same instance types share one index of them.
type rates struct {
	pools map[string]map[string]*cloud.InstanceType
}

func newRates(pools []model.Pool) *rates {
	r := &rates{pools: make(map[string]map[string]*cloud.InstanceType, len(pools))}
	indexed := map[*cloud.InstanceType]map[string]*cloud.InstanceType{}
	for _, pool := range pools {
		if len(pool.Types) == 0 {
			continue
		}
		index := indexed[pool.Types[0]]
		if len(index) != len(pool.Types) {
			index = make(map[string]*cloud.InstanceType, len(pool.Types))
			for _, typ := range pool.Types {
				index[typ.Name] = typ
			}
			indexed[pool.Types[0]] = index
		}
		r.pools[pool.NodePool.Name] = index
	}
	return r
}

// of is what a node costs now, in US dollars per hour. It is not known for a type, a zone or a capacity type that the
// node's pool cannot buy (any more).
func (r *rates) of(n *model.Node) (price float64, known bool) {
	typ := r.pools[n.Pool][n.InstanceType]
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
