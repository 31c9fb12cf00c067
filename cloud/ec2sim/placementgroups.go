package ec2sim

import (
	"cmp"
	"slices"
	"time"
)

// placementGroup is a placement group of the account. Which instances are in it follows from the instances.
type placementGroup struct {
	ID         string
	Name       string
	Strategy   string
	Partitions int    `json:",omitempty"` // of a partition group
	Level      string `json:",omitempty"` // rack or host, of a spread group
	Tags       map[string]string
	CreatedAt  time.Time
}

const (
	placementCluster   = "cluster"
	placementPartition = "partition"
	placementSpread    = "spread"

	// spreadRoom is how many running instances a spread group takes in each zone, and maxPartitions how many partitions a
	// partition group has (EC2 User Guide, "Placement strategies for your placement groups"). With Dedicated Instances it has
	// at most dedicatedPartitions.
	spreadRoom          = 7
	maxPartitions       = 7
	dedicatedPartitions = 2
	// defaultPartitions is how many partitions EC2 makes if the request does not say (API reference, CreatePlacementGroup).
	defaultPartitions = 2
)

// placementGroups are the account's placement groups, by id.
type placementGroups struct {
	*table[placementGroup]
	account   *account
	faults    *injector
	instances *table[instance]
}

// available reports whether a group can be launched into: a new one is pending at first.
func (pg *placementGroups) available(g *placementGroup) bool {
	return !pg.faults.late(pg.faults.current().PlacementGroupLag, g.CreatedAt)
}

func unknownPlacementGroup(name string) error {
	return refuse("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
}

// named returns the group with a name, or nil.
func (pg *placementGroups) named(name string) *placementGroup {
	for _, g := range pg.rows {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// forLaunch returns the group that a launch names, or nil if it names none. Which launches EC2 refuses is documented with the
// strategies (EC2 User Guide, "Placement strategies for your placement groups"); most of the error codes are not.
func (pg *placementGroups) forLaunch(spec *launchSpec, t *InstanceType) (*placementGroup, error) {
	if spec.PlacementID == "" && spec.PlacementGroup == "" {
		if spec.Partition != 0 {
			return nil, refuse("InvalidParameterCombination", "A partition number needs a placement group")
		}
		return nil, nil
	}
	if spec.PlacementID != "" && spec.PlacementGroup != "" { // API reference, Placement
		return nil, refuse("InvalidParameterCombination", "The parameters GroupId and GroupName cannot be used together")
	}
	g := pg.rows[spec.PlacementID]
	if spec.PlacementGroup != "" {
		g = pg.named(spec.PlacementGroup)
	}
	dedicated := spec.Tenancy == "dedicated"
	switch {
	case g == nil || !pg.available(g):
		return nil, unknownPlacementGroup(spec.PlacementID + spec.PlacementGroup)
	case spec.Tenancy == "host":
		return nil, refuse("InvalidParameterCombination", "Dedicated Hosts cannot be in a placement group")
	case !slices.Contains(t.PlacementStrategies(), g.Strategy):
		return nil, refuse("InvalidParameterCombination", "Placement groups of the strategy %s are not supported by the instance type %s", g.Strategy, t.Name)
	case dedicated && g.Strategy == placementSpread:
		return nil, refuse("InvalidParameterCombination", "Dedicated Instances cannot be in a placement group of the strategy spread")
	case dedicated && g.Partitions > dedicatedPartitions:
		return nil, refuse("InvalidParameterCombination", "A placement group for Dedicated Instances has at most %d partitions", dedicatedPartitions)
	case spec.Interruption != "" && spec.Interruption != "terminate":
		return nil, refuse("InvalidParameterCombination", "A Spot Instance that an interruption stops or hibernates cannot be in a placement group")
	case spec.Partition != 0 && g.Strategy != placementPartition:
		return nil, refuse("InvalidParameterCombination", "The placement group '%s' has no partitions", g.Name)
	case spec.Partition < 0 || spec.Partition > g.Partitions:
		return nil, invalidValue("The placement group '%s' has no partition %d", g.Name, spec.Partition)
	}
	return g, nil
}

// admit finds a place in the group for one more instance, and returns the number of its partition; 0 if the group has none. It
// fails if the group takes no more in the order's zone.
func (pg *placementGroups) admit(o *launchOrder) (partition int, err error) {
	g := o.placement
	if g == nil {
		return 0, nil
	}
	inZone, inPartition := 0, make([]int, g.Partitions+1)
	for _, i := range pg.instances.rows {
		if i.PlacementGroup != g.ID || i.ended() {
			continue
		}
		if g.Strategy == placementCluster && i.Zone != o.subnet.Zone { // hashicorp/terraform, issue 16183
			return 0, refuse("InvalidPlacementGroup.InUse", "The placement group '%s' is in use in another availability zone: %s", g.Name, i.Zone)
		}
		if i.Zone == o.subnet.Zone && !i.stopped() {
			inZone++
		}
		inPartition[i.Partition]++
	}
	switch g.Strategy {
	case placementSpread:
		if inZone >= spreadRoom { // Karpenter recognizes the message (pkg/errors, IsSpreadPlacementGroupLimitError)
			return 0, refuse("InsufficientInstanceCapacity", "You've reached the limit of instances in this spread placement group, which is %d per Availability Zone.", spreadRoom)
		}
	case placementPartition:
		if o.spec.Partition != 0 {
			return o.spec.Partition, nil
		}
		// EC2 tries to distribute the instances evenly, without a guarantee.
		least := slices.Min(inPartition[1:])
		return 1 + slices.Index(inPartition[1:], least), nil
	}
	return 0, nil
}

type placementGroupXML struct {
	ID         string   `xml:"groupId"`
	ARN        string   `xml:"groupArn"`
	Name       string   `xml:"groupName"`
	State      string   `xml:"state"`
	Strategy   string   `xml:"strategy"`
	Partitions int      `xml:"partitionCount,omitempty"`
	Level      string   `xml:"spreadLevel,omitempty"`
	Tags       []tagXML `xml:"tagSet>item,omitempty"`
}

func (pg *placementGroups) state(g *placementGroup) string {
	if pg.available(g) {
		return "available"
	}
	return "pending"
}

// arn returns the ARN of a group, which has its name and not its id.
func (pg *placementGroups) arn(g *placementGroup) string {
	return pg.account.arn("ec2", "placement-group/"+g.Name)
}

func (pg *placementGroups) xml(g *placementGroup) placementGroupXML {
	return placementGroupXML{
		ID: g.ID, ARN: pg.arn(g), Name: g.Name, State: pg.state(g), Strategy: g.Strategy, Partitions: g.Partitions, Level: g.Level, Tags: tagsXML(g.Tags),
	}
}

type createPlacementGroupXML struct {
	Return bool              `xml:"return"`
	Group  placementGroupXML `xml:"placementGroup"`
}

func (pg *placementGroups) create(c *call) (any, error) {
	p := c.form
	var n numbers
	g := &placementGroup{
		ID: newID("pg"), Name: p.str("GroupName"), Strategy: cmp.Or(p.str("Strategy"), placementCluster), Partitions: n.read(p, "PartitionCount"),
		Level: p.str("SpreadLevel"), CreatedAt: c.at,
	}
	tags, err := parseTagSpecifications(p)
	g.Tags = tags["placement-group"]
	switch {
	case cmp.Or(n.err, err) != nil:
		return nil, cmp.Or(n.err, err)
	case g.Name == "":
		return nil, missingParameter("groupName")
	case len(g.Name) > 255:
		return nil, invalidValue("The name of a placement group has at most 255 characters")
	case pg.named(g.Name) != nil:
		return nil, refuse("InvalidPlacementGroup.Duplicate", "The Placement Group '%s' already exists.", g.Name)
	case g.Strategy == "precision-time":
		return nil, invalidValue("This simulator has no placement groups of the strategy precision-time")
	case g.Partitions != 0 && g.Strategy != placementPartition:
		return nil, refuse("InvalidParameterCombination", "PartitionCount is for the strategy partition")
	case g.Partitions < 0 || g.Partitions > maxPartitions:
		return nil, invalidValue("A placement group has 1 to %d partitions, not %d", maxPartitions, g.Partitions)
	case g.Level != "" && g.Strategy != placementSpread:
		return nil, refuse("InvalidParameterCombination", "SpreadLevel is for the strategy spread")
	case g.Level == "host": // "You can use host only with Outpost placement groups"
		return nil, invalidValue("This simulator has no Outposts, which the spread level host is for")
	}
	switch g.Strategy {
	case placementPartition:
		setDefault(&g.Partitions, defaultPartitions)
	case placementSpread:
		setDefault(&g.Level, "rack")
	}
	if *orFalse(p.flag("DryRun")) {
		return nil, errDryRun
	}
	pg.put(g.ID, g)
	return createPlacementGroupXML{true, pg.xml(g)}, nil
}

// delete deletes a group. Its instances have to be terminated first (EC2 User Guide, "Delete a placement group").
func (pg *placementGroups) delete(c *call) (any, error) {
	g := pg.named(c.form.str("GroupName"))
	if g == nil {
		return nil, unknownPlacementGroup(c.form.str("GroupName"))
	}
	for _, i := range pg.instances.rows {
		if i.PlacementGroup == g.ID && i.state(c.at) != stateTerminated {
			return nil, refuse("InvalidPlacementGroup.InUse", "The placement group '%s' is in use and may not be deleted.", g.Name)
		}
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	pg.del(g.ID)
	return returnTrue, nil
}

type describePlacementGroupsXML struct {
	Groups []placementGroupXML `xml:"placementGroupSet>item"`
}

func (pg *placementGroups) describe(c *call) (any, error) {
	found, err := byID(pg.sorted(), func(g *placementGroup) string { return g.Name }, c.form.strings("GroupName"), unknownPlacementGroup)
	if err != nil {
		return nil, err
	}
	if found, err = byID(found, func(g *placementGroup) string { return g.ID }, c.form.strings("GroupId"), unknownPlacementGroup); err != nil {
		return nil, err
	}
	found, err = sift(found, parseFilters(c.form), func(g *placementGroup) attributes {
		return tagged(g.Tags, oneOf(map[string]string{
			"group-name": g.Name, "group-arn": pg.arn(g), "spread-level": g.Level, "state": pg.state(g), "strategy": g.Strategy,
		}))
	})
	if err != nil {
		return nil, err
	}
	out := describePlacementGroupsXML{}
	for _, g := range found {
		out.Groups = append(out.Groups, pg.xml(g))
	}
	return out, nil
}
