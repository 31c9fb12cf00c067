package aws

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"
)

// refreshShifts is how often ARC is asked for zonal shifts, as in Karpenter.
const refreshShifts = 30 * time.Second

// zonalShifts knows from which availability zones Amazon Application Recovery Controller shifts the cluster's traffic away.
// Nil knows of none.
type zonalShifts struct {
	read *refreshed[map[string]time.Time]
	now  func() time.Time

	mu   sync.Mutex
	last map[string]time.Time
	// seq changes with the answer, not with each reading: the offerings of all classes depend on it.
	seq uint64
}

// until returns until when each shifted zone, by id such as use1-az1, is to be left alone, and a number that changes with
// the answer.
func (z *zonalShifts) until(ctx context.Context) (map[string]time.Time, uint64, error) {
	if z == nil {
		return nil, 0, nil
	}
	shifts, _, err := z.read.get(ctx)
	if err != nil {
		return nil, 0, err
	}
	// Shifts end by themselves, whether ARC can be asked or not.
	inForce := maps.Clone(shifts)
	maps.DeleteFunc(inForce, func(_ string, until time.Time) bool { return !z.now().Before(until) })
	z.mu.Lock()
	defer z.mu.Unlock()
	if !maps.Equal(z.last, inForce) {
		z.last = inForce
		z.seq++
	}
	return inForce, z.seq, nil
}

// readShifts asks ARC for the shifts of a cluster that are in force, those of practice runs and of AWS included. Those that are
// superseded by another are not applied. Like Karpenter (pkg/providers/arczonalshift), it does not read the list of autoshifts,
// which have no end: without ARC's answer, a zone would be left alone for ever.
func readShifts(ctx context.Context, api *arczonalshift.Client, cluster string) (map[string]time.Time, error) {
	out, err := api.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(cluster)})
	if err != nil {
		return nil, classify("GetManagedResource", err)
	}
	shifts := map[string]time.Time{}
	for _, shift := range out.ZonalShifts {
		if zone := aws.ToString(shift.AwayFrom); shift.AppliedStatus == types.AppliedStatusApplied && zone != "" {
			shifts[zone] = aws.ToTime(shift.ExpiryTime).UTC()
		}
	}
	return shifts, nil
}
