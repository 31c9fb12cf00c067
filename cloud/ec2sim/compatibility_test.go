package ec2sim_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// The rules for instance types, images, interfaces and volumes: for each, one dry run that violates it and one that just
// complies.
func TestWhatAMachineTakes(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Images: []ec2sim.Image{
		{Name: "uefi", Arch: "x86_64", BootMode: "uefi"}, {Name: "legacy", Arch: "x86_64", BootMode: "legacy-bios"}, {Name: "legacy-arm", Arch: "arm64", BootMode: "legacy-bios"},
		{Name: "silent", Arch: "x86_64"}, {Name: "without ENA", Arch: "x86_64", NoENA: true}, {Name: "large", Arch: "x86_64", RootGiB: 50},
	}})
	own := func(name string) func(*ec2.RunInstancesInput) {
		return func(in *ec2.RunInstancesInput) { in.ImageId = aws.String(ec2sim.ImageID(name)) }
	}
	disk := func(image, device string, ebs *ec2types.EbsBlockDevice) func(*ec2.RunInstancesInput) {
		return func(in *ec2.RunInstancesInput) {
			own(image)(in)
			in.BlockDeviceMappings = append(in.BlockDeviceMappings, ec2types.BlockDeviceMapping{DeviceName: aws.String(device), Ebs: ebs})
		}
	}
	size := func(gib int32) *ec2types.EbsBlockDevice { return &ec2types.EbsBlockDevice{VolumeSize: aws.Int32(gib)} }
	type nic = ec2types.InstanceNetworkInterfaceSpecification
	network := func(interfaces ...nic) func(*ec2.RunInstancesInput) {
		return func(in *ec2.RunInstancesInput) {
			subnet := in.SubnetId
			in.SubnetId, in.NetworkInterfaces = nil, interfaces
			for i := range in.NetworkInterfaces {
				in.NetworkInterfaces[i].SubnetId = subnet
			}
		}
	}
	at := func(card, device int32, kind string) nic {
		return nic{NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(device), InterfaceType: aws.String(kind)}
	}
	public, prefixed, efaWithPrefix := at(0, 0, "interface"), at(0, 0, "interface"), at(0, 1, "efa-only")
	public.AssociatePublicIpAddress, prefixed.Ipv4PrefixCount, efaWithPrefix.Ipv4PrefixCount = aws.Bool(true), aws.Int32(1), aws.Int32(1)
	prefixes := func(n int32) nic {
		out := at(0, 0, "interface")
		out.Ipv4PrefixCount = aws.Int32(n)
		return out
	}
	enclave := func(in *ec2.RunInstancesInput) {
		in.EnclaveOptions = &ec2types.EnclaveOptionsRequest{Enabled: aws.Bool(true)}
	}
	cards := func(n int32, kind string) (out []nic) {
		for i := range n {
			out = append(out, at(i, min(i, 1), kind))
		}
		return out
	}
	for reason, tc := range map[string]struct {
		itype  string
		change func(*ec2.RunInstancesInput)
		code   string // of the refusal; empty means that the launch is accepted
	}{
		"UEFI on Nitro":                          {itype: "m5.large", change: own("uefi"), code: ""},
		"UEFI on Xen":                            {itype: "m4.large", change: own("uefi"), code: "InvalidParameterCombination"},
		"UEFI on Intel's bare metal":             {itype: "m5.metal", change: own("uefi"), code: "InvalidParameterCombination"},
		"legacy BIOS on Xen":                     {itype: "m4.large", change: own("legacy"), code: ""},
		"legacy BIOS on Nitro":                   {itype: "m5.large", change: own("legacy"), code: ""},
		"legacy BIOS on Graviton":                {itype: "m6g.large", change: own("legacy-arm"), code: "InvalidParameterCombination"},
		"an image that does not say":             {itype: "m4.large", change: own("silent"), code: ""},
		"no ENA on Nitro":                        {itype: "m5.large", change: own("without ENA"), code: "InvalidParameterCombination"},
		"no ENA on Xen":                          {itype: "m4.large", change: own("without ENA"), code: ""},
		"a root volume as large as its image's":  {itype: "m5.large", change: disk("large", "/dev/xvda", size(50)), code: ""},
		"a root volume smaller than its image's": {itype: "m5.large", change: disk("large", "/dev/xvda", size(49)), code: "InvalidBlockDeviceMapping"},
		"a root volume without a size": {itype: "m5.large",
			change: disk("large", "/dev/xvda", &ec2types.EbsBlockDevice{Encrypted: aws.Bool(true)}), code: ""},
		"a data volume of an image's snapshot": {itype: "m5.large", change: disk("silent", "/dev/xvdb", &ec2types.EbsBlockDevice{
			VolumeSize: aws.Int32(40), SnapshotId: aws.String("snap" + ec2sim.ImageID("large")[3:])}), code: "InvalidBlockDeviceMapping"},
		"a data volume without a size": {itype: "m5.large",
			change: disk("silent", "/dev/xvdb", &ec2types.EbsBlockDevice{Encrypted: aws.Bool(true)}), code: "MissingParameter"},
		"one device twice": {itype: "m5.large", change: func(in *ec2.RunInstancesInput) {
			disk("silent", "/dev/xvda", size(20))(in)
			disk("silent", "/dev/xvda", size(30))(in)
		}, code: "InvalidBlockDeviceMapping"},
		"an EFA on each of four cards":                              {itype: "p4d.24xlarge", change: network(cards(4, "efa")...), code: ""},
		"an EFA on a fifth card":                                    {itype: "p4d.24xlarge", change: network(cards(5, "efa")...), code: "InvalidParameterCombination"},
		"two EFAs on one card":                                      {itype: "p4d.24xlarge", change: network(at(0, 0, "efa"), at(0, 1, "efa")), code: "AttachmentLimitExceeded"},
		"an EFA where there is none":                                {itype: "m5.large", change: network(at(0, 0, "efa")), code: "InvalidParameterCombination"},
		"a primary interface of EFA only":                           {itype: "p4d.24xlarge", change: network(at(0, 0, "efa-only")), code: "InvalidParameterCombination"},
		"EFA only beside the primary one":                           {itype: "p4d.24xlarge", change: network(at(0, 0, "interface"), at(0, 1, "efa-only")), code: ""},
		"EFA only with addresses":                                   {itype: "p4d.24xlarge", change: network(at(0, 0, "interface"), efaWithPrefix), code: "InvalidParameterValue"},
		"a public address of one":                                   {itype: "m5.large", change: network(public), code: ""},
		"a public address of two":                                   {itype: "m5.large", change: network(public, at(0, 1, "interface")), code: "InvalidParameterCombination"},
		"prefixes on Nitro":                                         {itype: "m5.large", change: network(prefixed), code: ""},
		"prefixes on Xen":                                           {itype: "m4.large", change: network(prefixed), code: "InvalidParameterCombination"},
		"a prefix for each address of an interface besides its own": {itype: "m5.large", change: network(prefixes(9)), code: ""},
		"a prefix more than an interface has addresses":             {itype: "m5.large", change: network(prefixes(10)), code: "PrivateIpAddressLimitExceeded"},
		"an enclave on four vCPUs":                                  {itype: "m5.xlarge", change: enclave, code: ""},
		"an enclave on two of Intel":                                {itype: "m5.large", change: enclave, code: "InvalidParameterCombination"},
		"an enclave on Xen":                                         {itype: "m4.xlarge", change: enclave, code: "InvalidParameterCombination"},
		"a placement group": {itype: "m5.large", change: func(in *ec2.RunInstancesInput) {
			in.Placement = &ec2types.Placement{GroupId: aws.String("pg-1")}
		}, code: "InvalidPlacementGroup.Unknown"},
	} {
		in := &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: ec2types.InstanceType(tc.itype),
			ImageId: aws.String(a.image(t, "x86_64")), SubnetId: aws.String(a.subnets(t)[a.offeredIn(t, tc.itype)]),
		}
		tc.change(in)
		_, err := a.ec2.RunInstances(ctx(t), in)
		if tc.code == "" {
			tc.code = "DryRunOperation"
		}
		t.Run(reason, func(t *testing.T) { wantCode(t, err, tc.code) })
	}
}

// offeredIn returns a zone that offers the type.
func (a *account) offeredIn(t *testing.T, itype string) string {
	t.Helper()
	out, err := a.ec2.DescribeInstanceTypeOfferings(ctx(t), &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: ec2types.LocationTypeAvailabilityZone, Filters: []ec2types.Filter{filterOf("instance-type", itype)}})
	if err != nil || len(out.InstanceTypeOfferings) == 0 {
		t.Fatalf("%s is offered nowhere: %v", itype, err)
	}
	return aws.ToString(out.InstanceTypeOfferings[0].Location)
}

// The instances contain the fields by which Karpenter and Tenon recognise an instance in a reservation.
func TestInstancesInReservationsSaySo(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for market, r := range map[ec2types.MarketType]ec2sim.Reservation{
		"": {Targeted: true}, ec2types.MarketTypeCapacityBlock: {Block: true}, ec2types.MarketTypeInterruptibleCapacityReservation: {Interruptible: true, Targeted: true},
	} {
		r.Type, r.Zone, r.Count = "m5.large", "us-east-1a", 1
		id, err := a.sim.Reserve(r)
		if err != nil {
			t.Fatal(err)
		}
		in := &ec2.RunInstancesInput{
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", ImageId: aws.String(a.image(t, "x86_64")), SubnetId: aws.String(a.subnets(t)["us-east-1a"]),
			CapacityReservationSpecification: &ec2types.CapacityReservationSpecification{
				CapacityReservationPreference: ec2types.CapacityReservationPreferenceCapacityReservationsOnly,
				CapacityReservationTarget:     &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(id)}},
		}
		if market != "" {
			in.InstanceMarketOptions = &ec2types.InstanceMarketOptionsRequest{MarketType: market}
		}
		out, err := a.ec2.RunInstances(ctx(t), in)
		if err != nil {
			t.Fatalf("market %q: %v", market, err)
		}
		i := out.Instances[0]
		if use := i.CapacityReservationSpecification; string(i.InstanceLifecycle) != string(market) || aws.ToString(i.CapacityReservationId) != id ||
			use.CapacityReservationPreference != in.CapacityReservationSpecification.CapacityReservationPreference || use.CapacityReservationTarget == nil {
			t.Errorf("market %q: lifecycle %q, reservation %v, %+v", market, i.InstanceLifecycle, i.CapacityReservationId, use)
		}
	}
}
