package aws

import (
	"context"
	"slices"
	"time"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// EndingBlocks returns those of some capacity reservations that are capacity blocks in their last forty minutes, and when EC2
// begins to terminate their instances. Reservations that EC2 does not show are left out.
func (p *Provider) EndingBlocks(ctx context.Context, reservations []string) (map[string]time.Time, error) {
	pool := p.catalogue.reservations
	ending := map[string]time.Time{}
	for chunk := range slices.Chunk(reservations, maxFilterValues) {
		found, err := pool.describe(ctx, reservationQuery{ids: chunk})
		if err != nil {
			return nil, err
		}
		for i := range found {
			if r := readReservation(&found[i], pool.now()); r.State == awsv1.CapacityReservationStateExpiring {
				ending[r.ID] = r.EndTime.Add(-blockEmptied)
			}
		}
	}
	return ending, nil
}
