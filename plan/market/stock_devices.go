package market

import (
	"maps"

	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/solve"
)

// StockDevices works out how many pods of each kind of claims a machine has devices for. needs are the kinds, by key, and
// requests what a pod of the kind requests.
func StockDevices(m *Market, needs map[string]*devices.Needs, requests map[string][]int64) {
	for k, key := range m.Dims.Claims {
		for i := range m.Machines {
			usable := m.Machines[i].Usable
			if !m.Devices.Reaches(SellerOf(m, i).Name, m.Machines[i].Typ) {
				usable[m.Dims.Claimed(k)] = 0
				continue
			}
			usable[m.Dims.Claimed(k)] = int64(m.NewDevices(i).Holds(needs[key], solve.Times(requests[key], usable)))
		}
	}
}

// NewDevices returns the devices of a new machine; nil if no pod claims any.
func (m *Market) NewDevices(index int) *devices.Room {
	if m.Devices == nil {
		return nil
	}
	return m.Devices.NewRoom(SellerOf(m, index).Name, m.Machines[index].Typ, labelsOfNew(m, index)).WithDaemons(m.Machines[index].Claiming)
}

// DevicesInstead returns the devices of a machine that might be bought instead of another, which has a room already.
func (m *Market) DevicesInstead(room *devices.Room, index int) *devices.Room {
	return room.Instead(SellerOf(m, index).Name, m.Machines[index].Typ, labelsOfNew(m, index)).WithDaemons(m.Machines[index].Claiming)
}

// labelsOfNew returns the labels of a new machine that do not depend on its zone.
func labelsOfNew(m *Market, index int) map[string]string {
	labels := maps.Clone(m.Machines[index].Typ.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, SellerOf(m, index).Labels)
	return labels
}
