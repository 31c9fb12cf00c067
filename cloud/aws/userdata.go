package aws

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// userData renders the user data of a class's nodes as its AMI family requires, for the image with an id and a maximum number
// of pods.
func userData(cluster clusterFacts, class *awsv1.EC2NodeClass, labels map[string]string, taints []corev1.Taint, image string, pods int64) (string, error) {
	text, err := amifamily.Of(class.AMIFamily()).UserData(&amifamily.Node{
		Cluster: amifamily.Cluster{
			Name: cluster.name, Endpoint: cluster.endpoint, Authority: cluster.authority, ServiceCIDR: cluster.serviceCIDR,
		},
		Kubelet: class.Spec.Kubelet, MaxPods: pods, Labels: labels, Taints: taints,
		RAID0: usesInstanceStore(class), Image: imageName(class, image), Custom: aws.ToString(class.Spec.UserData),
	})
	if err != nil {
		return "", &cloud.Error{Kind: cloud.Invalid, Reason: "InvalidUserData", Operation: "PrepareLaunch", Err: fmt.Errorf("spec.userData: %w", err)}
	}
	if err := awsv1.ValidateUserDataSize(text); err != nil {
		return "", &cloud.Error{Kind: cloud.Invalid, Reason: "UserDataSizeLimitExceeded", Operation: "PrepareLaunch", Err: err}
	}
	return text, nil
}

// usesInstanceStore reports whether pods of the class's nodes write to the instance store.
func usesInstanceStore(class *awsv1.EC2NodeClass) bool {
	return class.Spec.InstanceStorePolicy != nil && *class.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0
}

// imageName returns the name of an image of the class by its id, "" if its status does not have it.
func imageName(class *awsv1.EC2NodeClass, id string) string {
	for _, image := range class.Status.AMIs {
		if image.ID == id {
			return image.Name
		}
	}
	return ""
}
