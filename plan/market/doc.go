// Package market is everything that can be bought: a Machine is an instance type of a NodePool with one capacity type, in
// the zones in which it is to be had. Sets of machines are bitsets, and what one has and a pod asks for are vectors of
// integers. The market counts what limits and reservations leave.
//
// What a launch may choose from, once it is decided, is worked out here as well (offerings.go).
//
// Reading order: cache, vector, market, labels, limits, reservation, zones, choice, variant, zone_prices, launchable,
// daemons, open, offerings, overlay.
package market
