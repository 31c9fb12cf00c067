// Package market models everything that can be bought. A Machine is an instance type of a NodePool with one capacity type,
// in the zones in which it is available. Sets of machines are bitsets; the resources of a machine and the requests of a pod
// are vectors of integers. The market keeps count of what limits and reservations leave.
//
// It also determines what a launch may choose from, once the launch has been decided (offerings.go).
//
// Reading order: cache, vector, market, labels, limits, reservation, zones, choice, variant, zone_prices, launchable,
// daemons, excluded, open, stock_devices, offerings, overlay.
package market
