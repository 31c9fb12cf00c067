package nodegroup

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// templateFields is what becomes of a launch template (EC2 API reference, "ResponseLaunchTemplateData").
var templateFields = fields{
	carried: []string{"BlockDeviceMappings", "CapacityReservationSpecification", "CpuOptions", "IamInstanceProfile", "ImageId", "InstanceMarketOptions",
		"InstanceRequirements", "InstanceType", "MetadataOptions", "Monitoring", "NetworkInterfaces", "Placement", "SecurityGroupIds", "SecurityGroups",
		"TagSpecifications", "UserData", "EnclaveOptions", "HibernationOptions"},
	silent: map[string]string{
		"EbsOptimized": "every instance type of the current generation is",
		"Operator":     "it says who may change the template",
	},
	lost: map[string]string{
		"CreditSpecification":               "burstable instances get the account's default: set it with aws ec2 modify-default-credit-specification",
		"DisableApiStop":                    "Tenon never stops instances",
		"DisableApiTermination":             "Tenon has to be able to terminate its instances",
		"ElasticGpuSpecifications":          "AWS has ended Elastic Graphics",
		"ElasticInferenceAccelerators":      "AWS has ended Elastic Inference",
		"InstanceInitiatedShutdownBehavior": "an instance that shuts down is replaced",
		"KernelId":                          "it is for paravirtual images, on which no node runs",
		"KeyName":                           "classes have no SSH keys: use Session Manager, or write the key in spec.userData",
		"LicenseSpecifications":             "classes have no licence configurations",
		"MaintenanceOptions":                "an instance that fails is replaced instead of recovered",
		"PrivateDnsNameOptions":             "nodes get the subnet's settings",
		"RamDiskId":                         "it is for paravirtual images, on which no node runs",
	},
}

var (
	metadataFields  = fields{carried: []string{"HttpEndpoint", "HttpProtocolIpv6", "HttpPutResponseHopLimit", "HttpTokens"}, silent: map[string]string{"State": "it says how far a change is"}}
	placementFields = fields{carried: []string{"GroupName", "GroupId", "Tenancy", "AvailabilityZone", "AvailabilityZoneId"}, lost: map[string]string{
		"PartitionNumber": "require karpenter.k8s.aws/placement-group-partition", "Affinity": ofHosts, "HostId": ofHosts, "HostResourceGroupArn": ofHosts}}
	cpuFields     = fields{carried: []string{"NestedVirtualization"}}
	networkFields = fields{carried: []string{"AssociatePublicIpAddress", "Groups", "Ipv4PrefixCount", "ConnectionTrackingSpecification", "InterfaceType", "SubnetId"},
		silent: map[string]string{"DeviceIndex": "without interfaces of its own a class has the first one", "NetworkCardIndex": "likewise"},
		lost:   map[string]string{"DeleteOnTermination": "interfaces made at launch end with their instance"}}
	marketFields = fields{carried: []string{"MarketType"}, lost: map[string]string{"SpotOptions": "Tenon pays the price of the moment, and a spot instance that is interrupted is terminated"}}
)

const ofHosts = "classes have no dedicated hosts"

// launchTemplate is a proposal as far as it comes from a launch template.
type launchTemplate struct{ *proposal }

// template carries over a launch template. What differs between managed groups and others, the caller has done.
func (p *proposal) template(path string, t *ec2types.ResponseLaunchTemplateData) {
	spec := &p.class.Spec
	p.disks(path+"blockDeviceMappings", t.BlockDeviceMappings)
	of := launchTemplate{p}
	of.securityGroups(t)
	of.networkInterfaces(path+"networkInterfaces", t.NetworkInterfaces)
	p.metadata(path+"metadataOptions.", t.MetadataOptions)
	if t.Monitoring != nil {
		spec.DetailedMonitoring = t.Monitoring.Enabled
	}
	if o := t.CpuOptions; o != nil {
		if o.NestedVirtualization != "" {
			spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: aws.String(string(o.NestedVirtualization))}
		}
		p.say(path+"cpuOptions.", o, cpuFields)
	}
	if aws.ToBool(enclave(t)) {
		p.lost(path+"enclaveOptions", "nodes get enclaves when pods request eks.amazonaws.com/nip-slots, and a NodeOverlay says which types have them")
	}
	if t.HibernationOptions != nil && aws.ToBool(t.HibernationOptions.Configured) {
		p.lost(path+"hibernationOptions", "nodes do not hibernate")
	}
	of.placement(path+"placement.", t.Placement)
	of.reservations(path+"capacityReservationSpecification.", t.CapacityReservationSpecification)
	of.tags(path+"tagSpecifications", t.TagSpecifications)
	p.say(path, t, templateFields)
}

func enclave(t *ec2types.ResponseLaunchTemplateData) *bool {
	if t.EnclaveOptions == nil {
		return nil
	}
	return t.EnclaveOptions.Enabled
}

// securityGroups selects the groups of a template: those of the interfaces, or its own.
func (p launchTemplate) securityGroups(t *ec2types.ResponseLaunchTemplateData) {
	for _, id := range t.SecurityGroupIds {
		p.securityGroup(awsv1.SecurityGroupSelectorTerm{ID: id})
	}
	for _, name := range t.SecurityGroups {
		p.securityGroup(awsv1.SecurityGroupSelectorTerm{Name: name})
	}
	for i := range t.NetworkInterfaces {
		for _, id := range t.NetworkInterfaces[i].Groups {
			p.securityGroup(awsv1.SecurityGroupSelectorTerm{ID: id})
		}
	}
}

func (p *proposal) securityGroup(term awsv1.SecurityGroupSelectorTerm) {
	for _, other := range p.class.Spec.SecurityGroupSelectorTerms {
		if other.ID == term.ID && other.Name == term.Name {
			return
		}
	}
	p.class.Spec.SecurityGroupSelectorTerms = append(p.class.Spec.SecurityGroupSelectorTerms, term)
}

// networkInterfaces carries over what a class can say of the first interface.
func (p launchTemplate) networkInterfaces(path string, interfaces []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecification) {
	spec := &p.class.Spec
	for i := range interfaces {
		n, at := &interfaces[i], fmt.Sprintf("%s[%d].", path, i)
		if kind := aws.ToString(n.InterfaceType); strings.HasPrefix(kind, "efa") {
			p.lost(at+"interfaceType", "nodes get %s interfaces when pods request vpc.amazonaws.com/efa", kind)
		}
		if n.SubnetId != nil {
			p.lost(at+"subnetId", "the subnets are those of the group")
		}
		if i > 0 {
			if n.AssociatePublicIpAddress != nil || n.Ipv4PrefixCount != nil || n.ConnectionTrackingSpecification != nil {
				p.lost(strings.TrimSuffix(at, "."), "a class describes its first interface only")
			}
			continue
		}
		p.say(at, n, networkFields)
		spec.AssociatePublicIPAddress, spec.IPPrefixCount = n.AssociatePublicIpAddress, n.Ipv4PrefixCount
		if c := n.ConnectionTrackingSpecification; c != nil {
			spec.ConnectionTracking = &awsv1.ConnectionTracking{TCPEstablishedTimeout: c.TcpEstablishedTimeout, UDPStreamTimeout: c.UdpStreamTimeout, UDPTimeout: c.UdpTimeout}
		}
	}
}

// metadata carries over the options of the metadata service. A hop limit that nobody has set is 2 on nodes of managed groups
// and of images of Amazon, and 1 in a class.
func (p *proposal) metadata(path string, o *ec2types.LaunchTemplateInstanceMetadataOptions) {
	options := &awsv1.MetadataOptions{HTTPEndpoint: aws.String("enabled"), HTTPProtocolIPv6: aws.String("disabled"), HTTPPutResponseHopLimit: aws.Int64(2),
		HTTPTokens: aws.String("required")}
	p.class.Spec.MetadataOptions = options
	if o == nil || o.HttpPutResponseHopLimit == nil {
		p.changed(strings.TrimSuffix(path, "."), "the hop limit 2, which nodes of groups have unless a launch template says otherwise, is written out: the default of a class is 1")
	} else {
		options.HTTPPutResponseHopLimit = wide(o.HttpPutResponseHopLimit)
	}
	if o == nil {
		return
	}
	if o.HttpEndpoint != "" {
		options.HTTPEndpoint = aws.String(string(o.HttpEndpoint))
	}
	if o.HttpProtocolIpv6 != "" {
		options.HTTPProtocolIPv6 = aws.String(string(o.HttpProtocolIpv6))
	}
	if o.HttpTokens != "" {
		options.HTTPTokens = aws.String(string(o.HttpTokens))
	}
	p.say(path, o, metadataFields)
}

// placement carries over where instances are placed.
func (p launchTemplate) placement(path string, o *ec2types.LaunchTemplatePlacement) {
	if o == nil {
		return
	}
	if o.GroupName != nil || o.GroupId != nil {
		p.class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: o.GroupName, ID: o.GroupId}
		if o.GroupId != nil {
			p.class.Spec.PlacementGroupSelector.Name = nil
		}
	}
	switch o.Tenancy {
	case ec2types.TenancyDedicated:
		p.require(awsv1.LabelInstanceTenancy, corev1.NodeSelectorOpIn, string(o.Tenancy))
	case ec2types.TenancyHost:
		p.lost(path+"tenancy", "%s", ofHosts)
	}
	if o.AvailabilityZone != nil {
		p.require(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, *o.AvailabilityZone)
	}
	if o.AvailabilityZoneId != nil {
		p.require(awsv1.LabelTopologyZoneID, corev1.NodeSelectorOpIn, *o.AvailabilityZoneId)
	}
	p.say(path, o, placementFields)
}

// reservations selects the capacity reservation that a template names.
func (p launchTemplate) reservations(path string, o *ec2types.LaunchTemplateCapacityReservationSpecificationResponse) {
	if o == nil {
		return
	}
	if target := o.CapacityReservationTarget; target != nil {
		if target.CapacityReservationId != nil {
			p.class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: *target.CapacityReservationId}}
			p.require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeReserved)
			p.changed(path+"capacityReservationTarget", "the pool has the capacity type reserved for it")
		}
		if target.CapacityReservationResourceGroupArn != nil {
			p.lost(path+"capacityReservationTarget.capacityReservationResourceGroupArn", "select the reservations of the group by tags, in spec.capacityReservationSelectorTerms")
		}
	}
	if preference := o.CapacityReservationPreference; preference != "" && preference != ec2types.CapacityReservationPreferenceOpen {
		p.lost(path+"capacityReservationPreference", "a class uses the reservations that spec.capacityReservationSelectorTerms selects, and no others by choice")
	}
}

// tags puts on everything that is launched what a template puts on instances.
func (p launchTemplate) tags(path string, specifications []ec2types.LaunchTemplateTagSpecification) {
	for i := range specifications {
		kind := specifications[i].ResourceType
		for _, tag := range specifications[i].Tags {
			key, value := aws.ToString(tag.Key), aws.ToString(tag.Value)
			at := fmt.Sprintf("%s[%s][%s]", path, kind, key)
			if kind == ec2types.ResourceTypeInstance {
				p.tag(at, key, value)
			} else if p.class.Spec.Tags[key] != value {
				p.changed(at, "spec.tags are put on instances, volumes and interfaces alike")
				p.tag(at, key, value)
			}
		}
	}
}
