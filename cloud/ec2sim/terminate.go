package ec2sim

import "fmt"

type stateChangeXML struct {
	ID       string   `xml:"instanceId"`
	Current  stateXML `xml:"currentState"`
	Previous stateXML `xml:"previousState"`
}

type terminateInstancesXML struct {
	Changes []stateChangeXML `xml:"instancesSet>item"`
}

func (api *instanceAPI) terminate(c *call) (any, error) {
	ids := c.form.strings("InstanceId")
	if len(ids) == 0 {
		return nil, missingParameter("InstanceId")
	}
	if len(ids) > 1000 {
		return nil, invalidValue("At most 1000 instances can be terminated at once")
	}
	found, err := api.instances.visible(ids, c.at)
	if err != nil {
		return nil, err
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	var out terminateInstancesXML
	for _, i := range found {
		before := i.state(c.at)
		api.instances.end(i, c.at, "Client.UserInitiatedShutdown",
			fmt.Sprintf("Client.UserInitiatedShutdown: User initiated shutdown (%s)", c.at.UTC().Format("2006-01-02 15:04:05 GMT")))
		after := i.state(c.at)
		out.Changes = append(out.Changes, stateChangeXML{i.ID, stateXML{after.code, after.name}, stateXML{before.code, before.name}})
	}
	return out, nil
}
