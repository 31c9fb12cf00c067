package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// nodeClassKind is AWS's kind of v1beta1.
var nodeClassKind = schema.GroupVersionKind{Group: awsv1.Group, Version: "v1beta1", Kind: "EC2NodeClass"}

// maxTerms is how many terms a selector of v1 may have.
const maxTerms = 30

// familyUbuntu is an AMI family that v1 does not have.
const familyUbuntu = "Ubuntu"

// aliasVersionAnnotation is where Karpenter 1.0 keeps the version of an alias when somebody asks for a class in v1beta1.
const aliasVersionAnnotation = compatibilityDomain + awsv1.Group + "/v1-alias-version"

// betaNodeClass is a v1beta1 EC2NodeClass.
type betaNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              betaNodeClassSpec `json:"spec"`
	Status            json.RawMessage   `json:"status"`
}

type betaNodeClassSpec struct {
	SubnetSelectorTerms        []awsv1.SubnetSelectorTerm        `json:"subnetSelectorTerms"`
	SecurityGroupSelectorTerms []awsv1.SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms"`
	AssociatePublicIPAddress   *bool                             `json:"associatePublicIPAddress"`
	AMISelectorTerms           []betaAMITerm                     `json:"amiSelectorTerms"`
	AMIFamily                  *string                           `json:"amiFamily"`
	UserData                   *string                           `json:"userData"`
	Role                       string                            `json:"role"`
	InstanceProfile            *string                           `json:"instanceProfile"`
	Tags                       map[string]string                 `json:"tags"`
	BlockDeviceMappings        []betaBlockDevice                 `json:"blockDeviceMappings"`
	InstanceStorePolicy        *awsv1.InstanceStorePolicy        `json:"instanceStorePolicy"`
	DetailedMonitoring         *bool                             `json:"detailedMonitoring"`
	MetadataOptions            *awsv1.MetadataOptions            `json:"metadataOptions"`
	Context                    *string                           `json:"context"`
}

// betaAMITerm is a term without what v1 has added.
type betaAMITerm struct {
	Tags  map[string]string `json:"tags"`
	ID    string            `json:"id"`
	Name  string            `json:"name"`
	Owner string            `json:"owner"`
}

type betaBlockDevice struct {
	DeviceName *string     `json:"deviceName"`
	EBS        *betaVolume `json:"ebs"`
	RootVolume bool        `json:"rootVolume"`
}

// betaVolume is a volume as v1alpha1 and v1beta1 have it.
type betaVolume struct {
	DeleteOnTermination *bool   `json:"deleteOnTermination"`
	Encrypted           *bool   `json:"encrypted"`
	IOPS                *int64  `json:"iops"`
	KMSKeyID            *string `json:"kmsKeyID"`
	SnapshotID          *string `json:"snapshotID"`
	Throughput          *int64  `json:"throughput"`
	VolumeSize          *text   `json:"volumeSize"`
	VolumeType          *string `json:"volumeType"`
}

// classFields are the paths of an old class's fields, for notes.
type classFields struct {
	// path precedes every field, subnets, groups and images are the selectors' names.
	path, subnets, groups, images string
}

// nodeClass converts a v1beta1 EC2NodeClass.
func (o *object) nodeClass() {
	var old betaNodeClass
	if !o.decode(&old) {
		return
	}
	fields := classFields{path: "spec.", subnets: "subnetSelectorTerms", groups: "securityGroupSelectorTerms", images: "amiSelectorTerms"}
	if (old.Spec.Role == "") == (old.Spec.InstanceProfile == nil) {
		o.fail("spec.role", "a class has either a role or an instanceProfile: write one of them")
	}
	class := o.classOf(fields, o.metadata(&old.ObjectMeta), &old.Spec)
	o.classes = []*awsv1.EC2NodeClass{class}
}

// classOf makes a v1 class of what v1beta1 says.
func (o *object) classOf(fields classFields, metadata metav1.ObjectMeta, old *betaNodeClassSpec) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{TypeMeta: metav1.TypeMeta{APIVersion: awsv1.SchemeGroupVersion.String(), Kind: "EC2NodeClass"}, ObjectMeta: metadata}
	class.Spec = awsv1.EC2NodeClassSpec{
		SubnetSelectorTerms:        o.subnets(fields.path+fields.subnets, old.SubnetSelectorTerms),
		SecurityGroupSelectorTerms: o.securityGroups(fields.path+fields.groups, old.SecurityGroupSelectorTerms),
		AssociatePublicIPAddress:   old.AssociatePublicIPAddress,
		UserData:                   old.UserData,
		Role:                       old.Role,
		InstanceProfile:            old.InstanceProfile,
		Tags:                       o.tags(fields.path+"tags", old.Tags),
		BlockDeviceMappings:        o.disks(fields.path+"blockDeviceMappings", old.BlockDeviceMappings),
		InstanceStorePolicy:        old.InstanceStorePolicy,
		DetailedMonitoring:         old.DetailedMonitoring,
		MetadataOptions:            metadataOptions(old.MetadataOptions),
		Context:                    old.Context,
	}
	o.images(fields, old, class)
	return class
}

// resourceIDs match what v1 takes as an ID, by the prefix that EC2 gives to a kind of resource.
var resourceIDs = map[string]*regexp.Regexp{
	"subnet": regexp.MustCompile(`subnet-[0-9a-z]+`), "sg": regexp.MustCompile(`sg-[0-9a-z]+`), "ami": regexp.MustCompile(`ami-[0-9a-z]+`),
}

// checkID fails an object for an ID that v1 refuses.
func (o *object) checkID(field, id, prefix string) {
	if id != "" && !resourceIDs[prefix].MatchString(id) {
		o.fail(field, "%q is not an ID: write it as %s-0123456789abcdef0", id, prefix)
	}
}

// images converts the AMI family and the terms that choose images.
func (o *object) images(fields classFields, old *betaNodeClassSpec, class *awsv1.EC2NodeClass) {
	field := fields.path + fields.images
	for i, term := range old.AMISelectorTerms {
		at := fmt.Sprintf("%s[%d]", field, i)
		if fields.images == "amiSelector" {
			at = field
		}
		if term.ID != "" && (len(term.Tags) > 0 || term.Name != "" || term.Owner != "") {
			o.lost(at, "a term with an id can have nothing else in v1: tags, name and owner are left out beside %s", term.ID)
			term = betaAMITerm{ID: term.ID}
		}
		o.checkID(at, term.ID, "ami")
		converted := awsv1.AMISelectorTerm{Tags: term.Tags, ID: term.ID, Name: term.Name, Owner: term.Owner}
		if !slices.ContainsFunc(class.Spec.AMISelectorTerms, func(t awsv1.AMISelectorTerm) bool { return term.ID != "" && t.ID == term.ID }) {
			class.Spec.AMISelectorTerms = append(class.Spec.AMISelectorTerms, converted)
		}
	}
	if n := len(class.Spec.AMISelectorTerms); n > maxTerms {
		o.fail(field, "has %d combinations, and v1 takes %d terms: select fewer images, for example by a tag of their own", n, maxTerms)
	}
	family, chosen := ptr.Deref(old.AMIFamily, ""), len(class.Spec.AMISelectorTerms) > 0
	switch family {
	case awsv1.AMIFamilyAL2, awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket, awsv1.AMIFamilyWindows2019, awsv1.AMIFamilyWindows2022:
		if chosen {
			class.Spec.AMIFamily = &family
			break
		}
		alias := awsv1.Alias{Family: family, Version: awsv1.AliasVersionLatest}
		if version := o.annotation(aliasVersionAnnotation); version != "" {
			alias.Version = version
		}
		class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: alias.String()}}
		if family == awsv1.AMIFamilyAL2 {
			o.changed(fields.path+"amiFamily", "is now the alias %s. There are no AL2 images from Kubernetes 1.33 on: move to al2023@latest before", alias)
		}
	case familyUbuntu:
		if !chosen {
			o.fail(field, "is missing: v1 does not look for Ubuntu images by itself, so select them here, for example by name and owner")
			return
		}
		o.changed(fields.path+"amiFamily", "is now AL2, whose images boot in the same way, with Ubuntu's disk where no other is given")
		class.Spec.AMIFamily = ptr.To(awsv1.AMIFamilyAL2)
		if len(old.BlockDeviceMappings) == 0 {
			class.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: ptr.To("/dev/sda1"), RootVolume: true,
				EBS: &awsv1.BlockDevice{Encrypted: ptr.To(true), VolumeType: ptr.To("gp3"), VolumeSize: ptr.To(resource.MustParse("20Gi"))}}}
		}
	case awsv1.AMIFamilyCustom:
		if !chosen {
			o.fail(field, "is missing: the family Custom has no images of its own")
		}
		class.Spec.AMIFamily = &family
	default:
		o.fail(fields.path+"amiFamily", "%q is not a family: write AL2023, Bottlerocket or Custom, for example", family)
	}
}

// subnets converts the terms that choose subnets.
func (o *object) subnets(field string, old []awsv1.SubnetSelectorTerm) []awsv1.SubnetSelectorTerm {
	if len(old) == 0 || len(old) > maxTerms {
		o.fail(field, "has %d combinations, and v1 takes 1 to %d terms", len(old), maxTerms)
	}
	terms := slices.Clone(old)
	for i := range terms {
		o.checkID(field, terms[i].ID, "subnet")
		if terms[i].ID != "" && len(terms[i].Tags) > 0 {
			o.lost(field, "a term with an id can have nothing else in v1: tags are left out beside %s", terms[i].ID)
			terms[i].Tags = nil
		}
	}
	return terms
}

// securityGroups converts the terms that choose security groups.
func (o *object) securityGroups(field string, old []awsv1.SecurityGroupSelectorTerm) []awsv1.SecurityGroupSelectorTerm {
	if len(old) == 0 || len(old) > maxTerms {
		o.fail(field, "has %d combinations, and v1 takes 1 to %d terms", len(old), maxTerms)
	}
	terms := slices.Clone(old)
	for i, term := range terms {
		o.checkID(field, term.ID, "sg")
		switch {
		case term.ID != "" && (len(term.Tags) > 0 || term.Name != ""):
			o.lost(field, "a term with an id can have nothing else in v1: tags and name are left out beside %s", term.ID)
			terms[i] = awsv1.SecurityGroupSelectorTerm{ID: term.ID}
		case term.Name != "" && len(term.Tags) > 0:
			o.lost(field, "a term with a name can have nothing else in v1: tags are left out beside %s", term.Name)
			terms[i].Tags = nil
		}
	}
	return terms
}

// tags returns the tags that v1 allows.
func (o *object) tags(field string, old map[string]string) map[string]string {
	kept := maps.Clone(old)
	for _, key := range slices.Sorted(maps.Keys(old)) {
		restricted := strings.HasPrefix(key, "kubernetes.io/cluster") ||
			slices.Contains([]string{"eks:eks-cluster-name", karpv1.NodePoolLabelKey, karpv1.Group + "/nodeclaim", awsv1.Group + "/ec2nodeclass"}, key)
		if restricted {
			o.lost(fmt.Sprintf("%s[%s]", field, key), "every instance gets this tag by itself, with its own value: remove it")
			delete(kept, key)
		}
	}
	return kept
}

// metadataOptions returns the options with v1beta1's defaults, of which v1's hop limit differs: 1 keeps pods from the
// service.
func metadataOptions(old *awsv1.MetadataOptions) *awsv1.MetadataOptions {
	options := awsv1.MetadataOptions{}
	if old != nil {
		options = *old
	}
	fill := func(field **string, value string) {
		if *field == nil {
			*field = &value
		}
	}
	fill(&options.HTTPEndpoint, "enabled")
	fill(&options.HTTPProtocolIPv6, "disabled")
	fill(&options.HTTPTokens, "required")
	if options.HTTPPutResponseHopLimit == nil {
		options.HTTPPutResponseHopLimit = ptr.To[int64](2)
	}
	return &options
}

// disks converts block devices.
func (o *object) disks(field string, old []betaBlockDevice) []*awsv1.BlockDeviceMapping {
	var disks []*awsv1.BlockDeviceMapping
	for i, device := range old {
		disk := &awsv1.BlockDeviceMapping{DeviceName: device.DeviceName, RootVolume: device.RootVolume}
		if v := device.EBS; v != nil {
			disk.EBS = &awsv1.BlockDevice{DeleteOnTermination: v.DeleteOnTermination, Encrypted: v.Encrypted, IOPS: v.IOPS, KMSKeyID: v.KMSKeyID,
				SnapshotID: v.SnapshotID, Throughput: v.Throughput, VolumeType: v.VolumeType,
				VolumeSize: o.volumeSize(fmt.Sprintf("%s[%d].ebs.volumeSize", field, i), v.VolumeSize)}
			if v.VolumeSize == nil && v.SnapshotID == nil {
				o.fail(fmt.Sprintf("%s[%d].ebs.volumeSize", field, i), "is missing: without a snapshotID a volume needs a size")
			}
		}
		disks = append(disks, disk)
	}
	return disks
}

// wholeSize matches the sizes that v1 takes.
var wholeSize = regexp.MustCompile(`^[1-9][0-9]*(Gi|G|Ti|T)$`)

// volumeSize returns a size in a unit that v1 takes. Older versions took every quantity, and rounded it up to Gi.
func (o *object) volumeSize(field string, old *text) *resource.Quantity {
	if old == nil {
		return nil
	}
	size, err := resource.ParseQuantity(string(*old))
	if err != nil || size.Sign() <= 0 {
		o.fail(field, "%q is not a size: write for example 20Gi", *old)
		return nil
	}
	if wholeSize.MatchString(size.String()) {
		return &size
	}
	const gi = 1 << 30
	rounded := *resource.NewQuantity((size.Value()+gi-1)/gi*gi, resource.BinarySI)
	if !wholeSize.MatchString(rounded.String()) {
		o.fail(field, "%q is too large for a volume", *old)
		return nil
	}
	o.changed(field, "%s is now %s: v1 takes whole numbers of Gi, G, Ti or T", *old, rounded.String())
	return &rounded
}
