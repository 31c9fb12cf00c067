package convert

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// nodeTemplateKind is the kind of v1alpha1.
var nodeTemplateKind = schema.GroupVersionKind{Group: awsv1.Group, Version: "v1alpha1", Kind: "AWSNodeTemplate"}

// nodeTemplate is a v1alpha1 AWSNodeTemplate.
type nodeTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              nodeTemplateSpec `json:"spec"`
	Status            json.RawMessage  `json:"status"`
}

type nodeTemplateSpec struct {
	provider           `json:",inline"`
	UserData           *string           `json:"userData"`
	AMISelector        map[string]string `json:"amiSelector"`
	DetailedMonitoring *bool             `json:"detailedMonitoring"`
}

// provider is what a Provisioner's spec.provider may have. The AWSNodeTemplate has it too.
type provider struct {
	APIVersion            string                 `json:"apiVersion"`
	Kind                  string                 `json:"kind"`
	AMIFamily             *string                `json:"amiFamily"`
	Context               *string                `json:"context"`
	InstanceProfile       *string                `json:"instanceProfile"`
	SubnetSelector        map[string]string      `json:"subnetSelector"`
	SecurityGroupSelector map[string]string      `json:"securityGroupSelector"`
	Tags                  map[string]string      `json:"tags"`
	LaunchTemplate        *string                `json:"launchTemplate"`
	MetadataOptions       *awsv1.MetadataOptions `json:"metadataOptions"`
	BlockDeviceMappings   []alphaBlockDevice     `json:"blockDeviceMappings"`
}

// alphaBlockDevice is a disk as v1alpha1 has it, without the mark of the root volume.
type alphaBlockDevice struct {
	DeviceName *string     `json:"deviceName"`
	EBS        *betaVolume `json:"ebs"`
}

// nodeTemplate makes an EC2NodeClass of an AWSNodeTemplate.
func (c *conversion) nodeTemplate(o *object) {
	var old nodeTemplate
	if !o.decode(&old) {
		return
	}
	c.classFrom(o, "spec.", o.metadata(&old.ObjectMeta), &old.Spec)
}

// inlineProvider makes an EC2NodeClass of a Provisioner's spec.provider, under the Provisioner's name.
func (c *conversion) inlineProvider(o *object, raw json.RawMessage) {
	var old nodeTemplateSpec
	unknown, err := manifest.Decode(raw, &old.provider)
	if err != nil {
		o.fail("spec.provider", "%v", err)
		return
	}
	for _, problem := range unknown {
		o.lost("spec.provider."+problem.Field, "%s", problem.Text)
	}
	if old.Kind != "" && old.Kind != "AWS" {
		o.fail("spec.provider.kind", "%s is not AWS, which is the only provider that this command knows", old.Kind)
		return
	}
	c.classFrom(o, "spec.provider.", metav1.ObjectMeta{Name: o.name}, &old)
}

// classFrom makes a class of what v1alpha1 says, by way of v1beta1. path is where the spec is in the old object.
func (c *conversion) classFrom(o *object, path string, metadata metav1.ObjectMeta, old *nodeTemplateSpec) {
	if old.LaunchTemplate != nil {
		o.fail(path+"launchTemplate", "v1 has no launch templates of one's own: write what is in %s as amiSelector, userData, securityGroupSelector, instanceProfile and blockDeviceMappings",
			*old.LaunchTemplate)
		return
	}
	beta := betaNodeClassSpec{
		SubnetSelectorTerms:        subnetTerms(old.SubnetSelector),
		SecurityGroupSelectorTerms: securityGroupTerms(old.SecurityGroupSelector),
		AMISelectorTerms:           amiTerms(old.AMISelector),
		AMIFamily:                  old.AMIFamily,
		UserData:                   old.UserData,
		InstanceProfile:            old.InstanceProfile,
		Tags:                       old.Tags,
		DetailedMonitoring:         old.DetailedMonitoring,
		MetadataOptions:            old.MetadataOptions,
		Context:                    old.Context,
	}
	for _, device := range old.BlockDeviceMappings {
		beta.BlockDeviceMappings = append(beta.BlockDeviceMappings, betaBlockDevice{DeviceName: device.DeviceName, EBS: device.EBS})
	}
	if beta.AMIFamily == nil {
		family := awsv1.AMIFamilyAL2
		beta.AMIFamily = &family
	}
	c.identity(o, path, &beta)
	c.settings.tag(o, &beta)
	fields := classFields{path: path, subnets: "subnetSelector", groups: "securityGroupSelector", images: "amiSelector"}
	o.classes = []*awsv1.EC2NodeClass{o.classOf(fields, metadata, &beta)}
}

// identity gives a class without an instance profile the one that a setting of the controller named.
func (c *conversion) identity(o *object, path string, beta *betaNodeClassSpec) {
	field := path + "instanceProfile"
	switch {
	case beta.InstanceProfile != nil:
	case c.options.Role != "":
		beta.Role = c.options.Role
	case c.options.InstanceProfile != "":
		beta.InstanceProfile = &c.options.InstanceProfile
	case c.settings.instanceProfile != "":
		o.changed(field, "is %s, the aws.defaultInstanceProfile of ConfigMap %s", c.settings.instanceProfile, settingsName)
		beta.InstanceProfile = &c.settings.instanceProfile
	default:
		o.fail(field, "is missing, and v1 has no aws.defaultInstanceProfile: give --role, or --instance-profile, or ConfigMap %s among the manifests", settingsName)
	}
}
