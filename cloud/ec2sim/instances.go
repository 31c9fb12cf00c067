package ec2sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// instances manages the lives of the account's machines: when something is due for one, how it ends, and who is notified.
type instances struct {
	*table[instance]
	faults                          *injector
	addresses                       *addresses
	events                          *events
	reservations                    *table[capacityReservation]
	shuttingDownFor, keepTerminated time.Duration

	nextDue time.Time     // when settle has work next; zero means never
	changed chan struct{} // wakes the kubelets
}

// settle applies everything that is due by now. It is called with the lock held, before anything is read.
func (is *instances) settle(now time.Time) {
	if is.nextDue.IsZero() || now.Before(is.nextDue) {
		return
	}
	for id, i := range is.rows {
		due := i.due(is.keepTerminated)
		switch {
		case due.IsZero() || now.Before(due):
		case i.ended():
			is.del(id)
		case due.Equal(i.InterruptAt):
			is.end(i, due, "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination")
		case due.Equal(i.EmptiedAt):
			is.end(i, due, "Server.ScheduledStop", "Server.ScheduledStop: Stopped due to the end of its capacity block")
		default:
			is.end(i, due, "Server.InternalError", "Server.InternalError: Internal error on launch")
		}
	}
	is.scheduleDue()
}

// scheduleDue recomputes when settle has work next.
func (is *instances) scheduleDue() {
	is.nextDue = time.Time{}
	for _, i := range is.rows {
		is.notBefore(i)
	}
}

// notBefore makes sure that settle runs when something is due for a changed instance.
func (is *instances) notBefore(i *instance) {
	due := i.due(is.keepTerminated)
	if !due.IsZero() && (is.nextDue.IsZero() || due.Before(is.nextDue)) {
		is.nextDue = due
	}
}

// living returns the instances with the ids. It fails if one of them does not exist or has ended.
func (is *instances) living(ids []string) ([]*instance, error) {
	var found []*instance
	for _, id := range ids {
		i := is.rows[id]
		if i == nil || i.ended() {
			return nil, fmt.Errorf("no living instance %s", id)
		}
		found = append(found, i)
	}
	return found, nil
}

func instanceNotFound(ids ...string) error {
	if len(ids) == 1 {
		return refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", ids[0])
	}
	return refuse("InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist", strings.Join(ids, ", "))
}

// visible returns the instances that Describe calls see at now: those with the ids, or all.
func (is *instances) visible(ids []string, now time.Time) ([]*instance, error) {
	if len(ids) > 0 {
		var found []*instance
		var missing []string
		for _, id := range ids {
			i := is.rows[id]
			switch {
			case !strings.HasPrefix(id, "i-"):
				return nil, refuse("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
			case i == nil || !i.visible(now):
				missing = append(missing, id)
			case !slices.Contains(found, i):
				found = append(found, i)
			}
		}
		if missing != nil {
			return nil, instanceNotFound(missing...)
		}
		return found, nil
	}
	var all []*instance
	for _, i := range is.rows {
		if i.visible(now) {
			all = append(all, i)
		}
	}
	return all, nil
}

// interrupt announces the interruption of an instance at one instant, which may be in the future, and ends it at another.
func (is *instances) interrupt(i *instance, announced, end time.Time) {
	i.InterruptAt = end
	is.put(i.ID, i)
	is.notBefore(i)
	if i.Spot {
		is.events.announce(announced, is.events.interruption(i.ID, announced))
	} else {
		is.events.announce(announced, is.events.reservation(i.ID, announced))
	}
	is.wake()
}

// interruptible reports whether an instance runs in an interruptible capacity reservation, whose owner may reclaim it.
func (is *instances) interruptible(i *instance) bool {
	r := is.reservations.rows[i.Capacity]
	return r != nil && r.Interruptible
}

// takeBack undoes the launch of an instance that has not been reported to anybody yet.
func (is *instances) takeBack(i *instance) {
	is.addresses.release(i)
	is.del(i.ID)
}

// end terminates an instance at an instant, for a reason.
func (is *instances) end(i *instance, at time.Time, code, reason string) {
	if i.ended() {
		return
	}
	i.EndedAt, i.EndCode, i.EndReason = at, code, reason
	is.addresses.release(i)
	i.EndSeenAt = at.Add(time.Duration(is.faults.current().DescribeLag))
	i.GoneAt = at.Add(is.shuttingDownFor)
	is.put(i.ID, i)
	is.notBefore(i)
	is.events.announce(at, is.events.stateChange("shutting-down")(i.ID, at))
	is.events.announce(i.GoneAt, is.events.stateChange("terminated")(i.ID, i.GoneAt))
	is.wake()
}

// stop stops an instance, which keeps its address and its disks. The caller must wake the kubelets.
func (is *instances) stop(i *instance, at time.Time) {
	i.StoppedAt, i.EndCode = at, "Client.UserInitiatedShutdown"
	i.EndReason = fmt.Sprintf("Client.UserInitiatedShutdown: User initiated shutdown (%s)", at.UTC().Format("2006-01-02 15:04:05 GMT"))
	i.HaltedAt = at.Add(is.shuttingDownFor)
	is.put(i.ID, i)
	is.events.announce(at, is.events.stateChange("stopping")(i.ID, at))
	is.events.announce(i.HaltedAt, is.events.stateChange("stopped")(i.ID, i.HaltedAt))
}

// wake makes the kubelets look at the instances again.
func (is *instances) wake() {
	select {
	case is.changed <- struct{}{}:
	default:
	}
}
