// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"maps"
	"slices"
)

// Schema is the version of the names, labels and values of slices. The rules of a
// cluster's own Prometheus may be older or newer than the rules that read its slices.
const Schema = "schema"

// SliceSchema is the Schema of the slices that the current rules make and
// read. It must change when older slices cannot be read in the same way.
const SliceSchema = "1"

// Values are the limits of a series' values. Other values are not possible measurements.
type Values struct {
	Min, Max float64
	// Now means that the value is the time of the sample, in seconds since 1970.
	Now bool
}

const (
	// maxCount is larger than the number of slices, requests, pods or objects of any cluster in a slice.
	maxCount = 1e12
	day      = 24 * 60 * 60
	// firstSecond and lastSecond are the ends of the years 0 to 9999, in seconds since 1970.
	firstSecond, lastSecond = -62_167_219_200, 253_402_300_799
)

var travelling = map[string]Values{
	SLIBad: {Max: 1}, SLIBadSlice: {Max: maxCount}, SLIBadVersion: {Max: maxCount}, SLIRequests: {Max: maxCount},
	SLIBadConfirmed: {Max: 1},
	SlicesRecorded:  {Max: lastSecond, Now: true},
	SLIBadCritical:  {Max: 1}, OperatorBadNow: {Max: 1}, AgentScrapeSlices: {Max: day},
	OperatorExpected: {Max: 1}, OperatorInfo: {Max: 1},
	ProbeSuccess: {Max: 1}, ProbeInterval: {Max: day},
	ProbeSSLEarliestExpiry:      {Min: firstSecond, Max: lastSecond},
	ProbeSSLChainExpiry:         {Min: firstSecond, Max: lastSecond},
	OperatorCertificateRotation: {Max: lastSecond},
	RecentRestarts:              {Max: maxCount}, CustomResourcesExcess: {Max: maxCount},
}

// Travelling returns the sorted names of the series that the Prometheus of a cluster must send
// to the hub's Prometheus if each evaluates a part of the rules: slices, results of probes,
// and installed operators. The hub part of the rules reads no other series of a cluster.
func Travelling() []string { return slices.Sorted(maps.Keys(travelling)) }

// FindValues returns the limits of a series that clusters send. It returns false for other series.
func FindValues(name string) (Values, bool) {
	v, ok := travelling[name]
	return v, ok
}
