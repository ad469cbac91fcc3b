// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// Schema is the version of the names, labels and values of slices. Rules of a
// cluster's own Prometheus may be older or newer than those that read its slices.
const Schema = "schema"

// SliceSchema is the Schema of the slices that rules make and read now. It changes
// when slices of before cannot be read as those of now.
const SliceSchema = "1"

// Travelling returns the names of the series that the Prometheus of a cluster has to
// send to the hub's, where each evaluates a part of the rules: slices, results of
// probes, and what is installed. The hub part of the rules reads no others of a
// cluster.
func Travelling() []string {
	return []string{
		SLIBad, SLIBadSlice, SLIBadVersion, SLIRequests, SlicesRecorded,
		SLIBadCritical, OperatorBadNow, AgentScrapeSlices,
		OperatorExpected, OperatorInfo,
		ProbeSuccess, ProbeInterval, ProbeSSLEarliestExpiry, OperatorCertificateRotation,
		RecentRestarts, CustomResourcesExcess,
	}
}
