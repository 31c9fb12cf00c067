// Package nodeclass describes EC2NodeClass to those who need no provider, such as the mirror of a cluster or a plan made
// offline. It reaches no AWS SDK.
package nodeclass

import (
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Kind returns the description of EC2NodeClass.
func Kind() cloud.Kind {
	return cloud.Kind{
		GroupVersionKind: awsv1.SchemeGroupVersion.WithKind(awsv1.Kind),
		Resource:         "ec2nodeclasses",
		New:              func() cloud.NodeClass { return &awsv1.EC2NodeClass{} },
		AddToScheme:      awsv1.AddToScheme,
		Finalizer:        awsv1.TerminationFinalizer,
		HashKey:          awsv1.AnnotationEC2NodeClassHash,
		HashVersionKey:   awsv1.AnnotationEC2NodeClassHashVersion,
		HashVersion:      awsv1.EC2NodeClassHashVersion,
		ProfileKey:       awsv1.AnnotationInstanceProfile,
		Labels:           Labels(),
	}
}

// Labels returns the keys of the labels of EC2 instances that mean something to Tenon.
func Labels() cloud.LabelKeys {
	return cloud.LabelKeys{
		ZoneID:                   awsv1.LabelTopologyZoneID,
		Tenancy:                  awsv1.LabelInstanceTenancy,
		PlacementGroup:           awsv1.LabelPlacementGroupID,
		Partition:                awsv1.LabelPlacementGroupPartition,
		Family:                   awsv1.LabelInstanceFamily,
		ReservationID:            awsv1.LabelCapacityReservationID,
		ReservationType:          awsv1.LabelCapacityReservationType,
		ReservationInterruptible: awsv1.LabelCapacityReservationInterruptible,
	}
}
