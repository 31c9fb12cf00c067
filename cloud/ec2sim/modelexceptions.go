package ec2sim

// undocumentedFilters are filter names that EC2 takes although the documentation of the call does not list them.
var undocumentedFilters = map[string][]string{
	// Karpenter selects reservations by tags (pkg/providers/capacityreservation/types.go), as EC2NodeClass documents it.
	"DescribeCapacityReservations": {"tag:<key>", "tag-key"},
}
