package aws

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// securityGroupFilters turns selector terms into one set of filters per query. All ids share one query, and all names
// another.
func securityGroupFilters(terms []awsv1.SecurityGroupSelectorTerm) [][]types.Filter {
	var queries [][]types.Filter
	var ids, names []string
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case term.Name != "":
			names = append(names, term.Name)
		case len(term.Tags) > 0:
			queries = append(queries, tagFilters(term.Tags))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, []types.Filter{filter("group-id", ids...)})
	}
	if len(names) > 0 {
		queries = append(queries, []types.Filter{filter("group-name", names...)})
	}
	return queries
}

// selectSecurityGroups returns the security groups that any term matches, ordered by id.
func selectSecurityGroups(ctx context.Context, api *calls.EC2, terms []awsv1.SecurityGroupSelectorTerm) ([]awsv1.SecurityGroup, error) {
	found := make(map[string]awsv1.SecurityGroup)
	for _, filters := range securityGroupFilters(terms) {
		pages := ec2.NewDescribeSecurityGroupsPaginator(api.DescribeSecurityGroups, &ec2.DescribeSecurityGroupsInput{
			Filters: filters, MaxResults: aws.Int32(500),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, classify("DescribeSecurityGroups", err)
			}
			for _, group := range page.SecurityGroups {
				id := aws.ToString(group.GroupId)
				found[id] = awsv1.SecurityGroup{ID: id, Name: aws.ToString(group.GroupName)}
			}
		}
	}
	out := make([]awsv1.SecurityGroup, 0, len(found))
	for _, group := range found {
		out = append(out, group)
	}
	slices.SortFunc(out, func(a, b awsv1.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}
