package ec2sim

type runInstancesXML struct {
	ID        string        `xml:"reservationId"`
	OwnerID   string        `xml:"ownerId"`
	Groups    []groupXML    `xml:"groupSet>item,omitempty"`
	Instances []instanceXML `xml:"instancesSet>item"`
}

// runs handles RunInstances.
type runs struct {
	tokens    *clientTokens
	faults    *injector
	templates *launchTemplates
	launcher  *launcher
	instances *instances
	answers   *instanceAnswers
}

func (rs *runs) run(c *call) (any, error) {
	return rs.tokens.once(c, func() (any, error) {
		var n numbers
		least, most := n.read(c.form, "MinCount"), n.read(c.form, "MaxCount")
		if n.err != nil {
			return nil, n.err
		}
		if least < 1 || most < least {
			return nil, invalidValue("MinCount (%d) and MaxCount (%d) are not valid", least, most)
		}
		order, err := rs.order(c)
		if err != nil {
			return nil, err
		}
		if *orFalse(c.form.flag("DryRun")) {
			return nil, errDryRun
		}
		if err := rs.faults.spendLaunches(most); err != nil {
			return nil, err
		}
		var made []*instance
		for len(made) < most {
			i, err := rs.launcher.obtain(order, len(made), c.at)
			if err != nil && len(made) >= least {
				break
			}
			if err != nil {
				for _, m := range made {
					rs.instances.takeBack(m)
				}
				return nil, err
			}
			made = append(made, i)
		}
		out := runInstancesXML{ID: order.reservation, OwnerID: accountID}
		for _, i := range made {
			out.Instances = append(out.Instances, rs.answers.xml(i, c.at))
		}
		return out, nil
	})
}

// order resolves a RunInstances request.
func (rs *runs) order(c *call) (*launchOrder, error) {
	spec, err := parseLaunchSpec(c.form)
	if err != nil {
		return nil, err
	}
	var t *launchTemplate
	number := 0
	if ref := c.form.sub("LaunchTemplate"); ref != nil {
		template, version, err := rs.templates.forLaunch(ref)
		if err != nil {
			return nil, err
		}
		spec, t, number = version.Spec.overlay(spec), template, version.Number
	}
	setDefault(&spec.InstanceType, "m1.small") // EC2's default, on which no modern image runs
	order, err := rs.launcher.prepare(spec)
	if err != nil {
		return nil, err
	}
	order.template, order.version = t, number
	if err := order.checkMarket(spec.MarketType); err != nil {
		return nil, err
	}
	order.spot, order.token, order.reservation = spec.MarketType == "spot", c.form.str("ClientToken"), newID("r")
	return order, nil
}
