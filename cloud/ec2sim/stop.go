package ec2sim

type stopInstancesXML struct {
	Changes []stateChangeXML `xml:"instancesSet>item"`
}

// stop stops instances, which keep their addresses and disks and cannot be started again. Spot instances of one-time
// requests cannot be stopped (EC2 User Guide, "Stop a Spot Instance").
func (api *instanceAPI) stop(c *call) (any, error) {
	found, err := api.instances.visible(c.form.strings("InstanceId"), c.at)
	if err != nil {
		return nil, err
	}
	for _, i := range found {
		switch {
		case i.Spot:
			return nil, refuse("UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.", i.ID)
		case i.ended():
			return nil, refuse("IncorrectInstanceState", "The instance '%s' is not in a state from which it can be stopped.", i.ID)
		}
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	var out stopInstancesXML
	for _, i := range found {
		before := i.state(c.at)
		if !i.stopped() {
			api.instances.stop(i, c.at)
		}
		after := i.state(c.at)
		out.Changes = append(out.Changes, stateChangeXML{i.ID, stateXML{after.code, after.name}, stateXML{before.code, before.name}})
	}
	api.instances.wake()
	return out, nil
}
