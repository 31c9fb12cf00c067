package amifamily

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// Family is what the nodes of one AMI family have in common.
type Family struct {
	// Name is the family's name in spec.amiFamily.
	Name string
	// OS is the value of the label kubernetes.io/os. WindowsBuild is that of node.kubernetes.io/windows-build, which Linux
	// nodes do not have.
	OS, WindowsBuild string
	// Volumes are the volumes of nodes whose class lists none; nil leaves them to the image.
	Volumes []Volume
	// PodDevice is the device of the volume that pods write to; "" if only the image's maker knows.
	PodDevice string
	// PodsByENI says that nodes take as many pods as the VPC CNI has addresses for, 110 otherwise. ReservesByENI says that
	// the memory reserved for the kubelet depends on that number as well, whatever maxPods says.
	PodsByENI, ReservesByENI bool
	// PodsPerCore says that the kubelet can be told podsPerCore.
	PodsPerCore bool

	images      func(version, kubernetes string) []Image
	userData    func(*Node) (string, error)
	unsupported func(*awsv1.EC2NodeClass) field.ErrorList
}

// Volume is a volume that nodes have by default. It is encrypted, of type gp3, and ends with its instance.
type Volume struct {
	Device string
	GiB    int64
}

// Image is one build of a family's images.
type Image struct {
	// Parameter is the name of the SSM parameter with the image's id.
	Parameter string
	// Runs are the kinds of instance types that it runs on: one set of requirements for each, besides the architecture.
	Runs [][]corev1.NodeSelectorRequirement
}

// Kinds of instance types that images are built for.
var (
	noGPU    = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpDoesNotExist}
	gpu      = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceGPUCount, Operator: corev1.NodeSelectorOpExists}
	noNeuron = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpDoesNotExist}
	neuron   = corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceAcceleratorCount, Operator: corev1.NodeSelectorOpExists}

	plainOnly  = []corev1.NodeSelectorRequirement{noGPU, noNeuron}
	gpuOnly    = []corev1.NodeSelectorRequirement{gpu}
	neuronOnly = []corev1.NodeSelectorRequirement{neuron}
)

// runs lists the kinds of instance types that an image runs on.
func runs(kinds ...[]corev1.NodeSelectorRequirement) [][]corev1.NodeSelectorRequirement { return kinds }

// Images returns the builds of a version of the family's images: latest, or one in the family's own form. The Kubernetes
// version is a minor one such as 1.34. Builds that a version does not have are among them: their parameters do not exist.
func (f *Family) Images(version, kubernetes string) []Image { return f.images(version, kubernetes) }

// UserData returns the user data with which an instance of the family becomes the node. Equal nodes get equal user data. It
// fails if the user's own user data cannot be read.
func (f *Family) UserData(node *Node) (string, error) { return f.userData(node) }

// Unsupported returns what a class asks for that the family's nodes cannot do, by field. The class's images have to be in
// its status.
func (f *Family) Unsupported(class *awsv1.EC2NodeClass) field.ErrorList {
	if f.unsupported == nil {
		return nil
	}
	return f.unsupported(class)
}

// Paths of the fields that not every family can honour.
var (
	kubeletPath       = field.NewPath("spec", "kubelet")
	instanceStorePath = field.NewPath("spec", "instanceStorePolicy")
	userDataPath      = field.NewPath("spec", "userData")
)
