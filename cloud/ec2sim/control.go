package ec2sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Interrupt announces the interruption of spot instances, and of instances in interruptible capacity reservations, and
// ends them after the notice; EC2 gives two minutes. It fails, and interrupts none, if one is not a living instance of
// either kind.
func (s *Server) Interrupt(notice time.Duration, ids ...string) error {
	return s.guard.change(func(now time.Time) error {
		found, err := s.instances.living(ids)
		if err != nil {
			return err
		}
		for _, i := range found {
			if !i.Spot && !s.instances.interruptible(i) {
				return fmt.Errorf("instance %s is neither a spot instance nor in an interruptible capacity reservation", i.ID)
			}
		}
		for _, i := range found {
			s.instances.interrupt(i, now, now.Add(notice))
		}
		return nil
	})
}

// Rebalance announces a rebalance recommendation for the instances. Nothing else happens to them.
func (s *Server) Rebalance(ids ...string) error {
	return s.guard.change(func(now time.Time) error {
		found, err := s.instances.living(ids)
		for _, i := range found {
			s.events.announce(now, s.events.rebalance(i.ID, now))
		}
		return err
	})
}

// Kill ends the instances at once, as a failure of their hosts would.
func (s *Server) Kill(ids ...string) error {
	return s.guard.change(func(now time.Time) error {
		found, err := s.instances.living(ids)
		for _, i := range found {
			s.instances.end(i, now, "Server.InternalError", "Server.InternalError: Internal error")
		}
		return err
	})
}

// Announce delivers an event about each of the instances to every queue, without any other effect. The name is
// spot-interruption, rebalance-recommendation, reservation-interruption, scheduled-change, or a state, such as stopped.
// The instances need not exist.
func (s *Server) Announce(name string, ids ...string) error {
	named := s.events.byName()
	made := named[name]
	if made == nil {
		return fmt.Errorf("no event %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(named)), ", "))
	}
	return s.guard.change(func(now time.Time) error {
		for _, id := range ids {
			s.events.announce(now, made(id, now))
		}
		return nil
	})
}

// Post sends an arbitrary text to every queue.
func (s *Server) Post(body string) error {
	return s.guard.change(func(now time.Time) error {
		s.sqs.postAll(body, now)
		return nil
	})
}

// SetStatus replaces the status checks and scheduled events of living instances.
func (s *Server) SetStatus(status Status, ids ...string) error {
	return s.guard.change(func(now time.Time) error {
		checks, err := status.checks(now)
		if err != nil {
			return err
		}
		found, err := s.instances.living(ids)
		for _, i := range found {
			i.Status = checks
			s.instances.put(i.ID, i)
		}
		return err
	})
}

// SetPods sets how many pods with their own addresses run on each of the instances.
func (s *Server) SetPods(pods int, ids ...string) error {
	return s.guard.change(func(time.Time) error {
		found, err := s.instances.living(ids)
		for _, i := range found {
			i.Pods = pods
			s.instances.put(i.ID, i)
		}
		return err
	})
}

// AddImage creates an image of this or another account, or replaces the one with the same name, and returns its id.
func (s *Server) AddImage(i Image) (string, error) {
	if i.Name == "" || i.Arch != "x86_64" && i.Arch != "arm64" {
		return "", fmt.Errorf("an image needs a name and the architecture x86_64 or arm64, not %q and %q", i.Name, i.Arch)
	}
	im := i.add(s.images.kubernetes)
	return im.ID, s.guard.change(func(now time.Time) error {
		s.images.add(im, now)
		return nil
	})
}

// SetParameter writes one of the account's own SSM parameters. Names below /aws are Amazon's (Systems Manager User Guide,
// "Create a Parameter Store parameter using the AWS CLI").
func (s *Server) SetParameter(name, value string) error {
	if bare := strings.ToLower(strings.TrimPrefix(name, "/")); bare == "" || strings.HasPrefix(bare, "aws") || strings.HasPrefix(bare, "ssm") || value == "" {
		return fmt.Errorf("parameter %q = %q: a name may not begin with aws or ssm, and a value may not be empty", name, value)
	}
	return s.guard.change(func(now time.Time) error {
		s.ssm.put(name, value, now)
		return nil
	})
}

// ShiftZone has ARC shift the traffic of the cluster away from a zone, such as us-east-1a, for some time. Zero ends the shift.
func (s *Server) ShiftZone(zone string, lasts time.Duration) error {
	return s.ShiftZoneAs(zone, shiftByCustomer, lasts)
}

// ShiftZoneAs does the same for any kind of shift: ZONAL_SHIFT, which ShiftZone makes, ZONAL_AUTOSHIFT or PRACTICE_RUN.
func (s *Server) ShiftZoneAs(zone, kind string, lasts time.Duration) error {
	return s.guard.change(func(now time.Time) error { return s.shifts.shift(zone, kind, lasts, now) })
}

// Reserve creates a capacity reservation and returns its id. It also creates capacity blocks and interruptible
// reservations, which EC2's own API sells in other ways.
func (s *Server) Reserve(want Reservation) (string, error) {
	id := ""
	err := s.guard.change(func(now time.Time) error {
		r := want.wanted(now)
		err := s.reservations.reserve(r, now)
		id = r.ID
		return err
	})
	return id, err
}

// Faults returns the current faults.
func (s *Server) Faults() Faults {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return *s.faults.current()
}

// SetFaults replaces all faults and resets their counts.
func (s *Server) SetFaults(f Faults) error {
	return s.guard.change(func(time.Time) error {
		if err := f.validate(); err != nil {
			return err
		}
		s.faults.set(&f)
		return nil
	})
}

// Reset deletes everything except the seeded account: instances, templates, profiles, messages, tokens, faults and calls.
// Nodes that joined stay in the cluster.
func (s *Server) Reset() error {
	s.calls.reset()
	return s.guard.change(func(time.Time) error {
		s.reset(&s.opts)
		return nil
	})
}
