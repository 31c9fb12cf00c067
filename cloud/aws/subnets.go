package aws

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// refreshSubnets is how old the counts of free addresses may be.
const refreshSubnets = time.Minute

// tagFilters returns the EC2 filters that require all of these tags; "*" matches any value.
func tagFilters(tags map[string]string) []types.Filter {
	var keys []string
	for key := range tags {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var filters []types.Filter
	for _, key := range keys {
		if tags[key] == "*" {
			filters = append(filters, filter("tag-key", key))
		} else {
			filters = append(filters, filter("tag:"+key, tags[key]))
		}
	}
	return filters
}

// subnetFilters turns selector terms into one set of filters per query. All ids share one query.
func subnetFilters(terms []awsv1.SubnetSelectorTerm) [][]types.Filter {
	var queries [][]types.Filter
	var ids []string
	for _, term := range terms {
		if term.ID != "" {
			ids = append(ids, term.ID)
		} else if len(term.Tags) > 0 {
			queries = append(queries, tagFilters(term.Tags))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, []types.Filter{filter("subnet-id", ids...)})
	}
	return queries
}

// subnetPool knows how many addresses subnets have free. Launches of this process count at once; EC2's own count is
// read again every minute.
type subnetPool struct {
	api *calls.EC2
	now func() time.Time

	mu   sync.Mutex
	free map[string]subnetFacts
}

type subnetFacts struct {
	zoneID string
	free   int64
	// ipv6 says that it has a range of IPv6 addresses.
	ipv6 bool
	read time.Time
}

func newSubnetPool(api *calls.EC2, now func() time.Time) *subnetPool {
	return &subnetPool{api: api, now: now, free: make(map[string]subnetFacts)}
}

// selectSubnets returns the subnets that any term matches, those with the most free addresses first.
func (s *subnetPool) selectSubnets(ctx context.Context, terms []awsv1.SubnetSelectorTerm) ([]awsv1.Subnet, error) {
	found := make(map[string]types.Subnet)
	for _, filters := range subnetFilters(terms) {
		subnets, err := s.describe(ctx, filters)
		if err != nil {
			return nil, err
		}
		for _, subnet := range subnets {
			found[aws.ToString(subnet.SubnetId)] = subnet
		}
	}
	all := make([]types.Subnet, 0, len(found))
	for _, subnet := range found {
		all = append(all, subnet)
	}
	slices.SortFunc(all, func(a, b types.Subnet) int {
		return cmp.Or(
			cmp.Compare(aws.ToInt32(b.AvailableIpAddressCount), aws.ToInt32(a.AvailableIpAddressCount)),
			cmp.Compare(aws.ToString(a.SubnetId), aws.ToString(b.SubnetId)))
	})
	out := make([]awsv1.Subnet, len(all))
	for i, subnet := range all {
		out[i] = awsv1.Subnet{
			ID:     aws.ToString(subnet.SubnetId),
			Zone:   aws.ToString(subnet.AvailabilityZone),
			ZoneID: aws.ToString(subnet.AvailabilityZoneId),
		}
	}
	return out, nil
}

// describe reads subnets and records their free addresses.
func (s *subnetPool) describe(ctx context.Context, filters []types.Filter) ([]types.Subnet, error) {
	var out []types.Subnet
	pages := ec2.NewDescribeSubnetsPaginator(s.api.DescribeSubnets, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(500)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeSubnets", err)
		}
		out = append(out, page.Subnets...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for id, facts := range s.free {
		if now.Sub(facts.read) > time.Hour {
			delete(s.free, id)
		}
	}
	for _, subnet := range out {
		s.free[aws.ToString(subnet.SubnetId)] = subnetFacts{
			zoneID: aws.ToString(subnet.AvailabilityZoneId),
			free:   int64(aws.ToInt32(subnet.AvailableIpAddressCount)),
			ipv6:   hasIPv6(subnet),
			read:   now,
		}
	}
	return out, nil
}

// hasIPv6 reports whether a subnet has a range of IPv6 addresses.
func hasIPv6(subnet types.Subnet) bool {
	return slices.ContainsFunc(subnet.Ipv6CidrBlockAssociationSet, func(a types.SubnetIpv6CidrBlockAssociation) bool {
		return a.Ipv6CidrBlockState != nil && a.Ipv6CidrBlockState.State == types.SubnetCidrBlockStateCodeAssociated
	})
}

// withIPv6 returns the subnets without those known to have no range of IPv6 addresses. It makes no calls.
func (s *subnetPool) withIPv6(subnets []awsv1.Subnet) []awsv1.Subnet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(subnets), func(subnet awsv1.Subnet) bool {
		facts, known := s.free[subnet.ID]
		return known && !facts.ipv6
	})
}

// best returns, for each zone, the usable subnet with the most free addresses. It omits subnets that EC2 no longer has.
func (s *subnetPool) best(ctx context.Context, subnets []awsv1.Subnet, usable func(id string) bool) (map[string]awsv1.Subnet, error) {
	if err := s.update(ctx, subnets); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	best := make(map[string]awsv1.Subnet)
	for _, subnet := range subnets {
		facts, ok := s.free[subnet.ID]
		gone := !ok || s.now().Sub(facts.read) >= refreshSubnets
		if gone || !usable(subnet.ID) {
			continue
		}
		if other, ok := best[subnet.Zone]; !ok || facts.free > s.free[other.ID].free {
			best[subnet.Zone] = subnet
		}
	}
	return best, nil
}

// update reads the subnets whose counts are unknown or old.
func (s *subnetPool) update(ctx context.Context, subnets []awsv1.Subnet) error {
	s.mu.Lock()
	var old []string
	for _, subnet := range subnets {
		if facts, ok := s.free[subnet.ID]; !ok || s.now().Sub(facts.read) >= refreshSubnets {
			old = append(old, subnet.ID)
		}
	}
	s.mu.Unlock()
	for chunk := range slices.Chunk(old, maxFilterValues) {
		if _, err := s.describe(ctx, []types.Filter{filter("subnet-id", chunk...)}); err != nil {
			return err
		}
	}
	return nil
}

// took subtracts the addresses that newly launched instances will take from a subnet.
func (s *subnetPool) took(id string, addresses int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if facts, ok := s.free[id]; ok {
		facts.free -= addresses
		s.free[id] = facts
	}
}

// zoneID returns the id of the zone a subnet is in, "" if the subnet is not known.
func (s *subnetPool) zoneID(subnet string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free[subnet].zoneID
}
