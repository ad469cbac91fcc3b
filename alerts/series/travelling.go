// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"slices"
)

// Schema is the version of the names, labels and values of slices. Rules of a
// cluster's own Prometheus may be older or newer than those that read its slices.
const Schema = "schema"

// SliceSchema is the Schema of the slices that rules make and read now. It changes
// when slices of before cannot be read as those of now.
const SliceSchema = "1"

// Values are those that a series can have, or that a cluster can send of it: more would be no measurement.
type Values struct {
	Min, Max float64
	// Now says that the value is the time of the sample, in seconds since 1970.
	Now bool
}

const (
	// atMost is more slices, requests, pods or objects than any cluster has in a slice.
	atMost = 1e12
	day    = 24 * 60 * 60
	// firstSecond and lastSecond are the ends of the years 0 to 9999, in seconds since 1970.
	firstSecond, lastSecond = -62_167_219_200, 253_402_300_799
)

var travelling = map[string]Values{
	SLIBad: {Max: 1}, SLIBadSlice: {Max: atMost}, SLIBadVersion: {Max: atMost}, SLIRequests: {Max: atMost},
	SLIBadConfirmed: {Max: 1},
	SlicesRecorded:  {Max: lastSecond, Now: true},
	SLIBadCritical:  {Max: 1}, OperatorBadNow: {Max: 1}, AgentScrapeSlices: {Max: day},
	OperatorExpected: {Max: 1}, OperatorInfo: {Max: 1},
	ProbeSuccess: {Max: 1}, ProbeInterval: {Max: day},
	ProbeSSLEarliestExpiry:      {Min: firstSecond, Max: lastSecond},
	ProbeSSLChainExpiry:         {Min: firstSecond, Max: lastSecond},
	OperatorCertificateRotation: {Max: lastSecond},
	RecentRestarts:              {Max: atMost}, CustomResourcesExcess: {Max: atMost},
}

// Travelling returns the names of the series that the Prometheus of a cluster has to
// send to the hub's, where each evaluates a part of the rules: slices, results of
// probes, and what is installed. The hub part of the rules reads no others of a
// cluster. They are sorted.
func Travelling() []string { return slices.Sorted(maps.Keys(travelling)) }

// ValuesOf returns the values of a series that travels, and whether it does.
func ValuesOf(name string) (Values, bool) {
	v, ok := travelling[name]
	return v, ok
}
