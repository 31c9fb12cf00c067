package ec2sim

type allocationXML struct {
	Source string `xml:"sourceCapacityReservationId"`
	Count  int    `xml:"targetInstanceCount"`
	Status string `xml:"status"`
	Kind   string `xml:"interruptionType"`
}

// allocate creates an interruptible reservation from the free capacity of a reservation (EC2 User Guide, "Interruptible
// Capacity Reservations": the owner allocates from its own targeted reservation, and may reclaim the capacity).
func (cr *capacityReservations) allocate(c *call) (any, error) {
	return cr.tokens.once(c, func() (any, error) {
		id := c.form.str("CapacityReservationId")
		count, err := c.form.integer("InstanceCount", 0)
		if err != nil {
			return nil, err
		}
		tags, err := parseTagSpecifications(c.form)
		if err != nil {
			return nil, err
		}
		r := cr.rows[id]
		switch {
		case r == nil:
			return nil, refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
		case r.state(c.at) != "active":
			return nil, refuse("InvalidCapacityReservationState", "The capacity reservation '%s' is %s.", id, r.state(c.at))
		case r.market() != "" || r.Match != matchTargeted || r.Allocated > 0:
			return nil, refuse("InvalidParameterCombination", "The capacity reservation '%s' cannot be allocated from", id)
		case count < 1 || count > cr.free(r):
			return nil, invalidValue("The capacity reservation '%s' has %d instances to allocate, not %d", id, cr.free(r), count)
		case *orFalse(c.form.flag("DryRun")):
			return nil, errDryRun
		}
		made := &capacityReservation{Type: r.Type, Zone: r.Zone, Total: count, Match: matchTargeted, Kind: kindDefault, Interruptible: true, Tags: tags["capacity-reservation"]}
		if err := cr.reserve(made, c.at); err != nil {
			return nil, err
		}
		r.Allocated, r.AllocatedTo = count, made.ID
		cr.put(r.ID, r)
		return allocationXML{r.ID, count, "active", "adhoc"}, nil
	})
}
