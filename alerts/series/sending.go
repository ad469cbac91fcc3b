// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// Series of the gate through which clusters send.
const (
	// RemoteWriteRequests counts requests by the Code of the response.
	RemoteWriteRequests = "bellwether_remote_write_requests_total"
	// RemoteWriteSamples counts the samples of a Cluster that the store accepted.
	RemoteWriteSamples = "bellwether_remote_write_samples_total"
	// RemoteWriteRefused counts requests of a Cluster that were refused for a Reason.
	RemoteWriteRefused = "bellwether_remote_write_refused_total"
	// RemoteWriteSeries is how many series of a Cluster arrived within the last hour.
	RemoteWriteSeries = "bellwether_remote_write_active_series"
	// Code is an HTTP status code.
	Code = "code"
)

// RemoteWriteGate returns the series that the remote-write gate exports.
func RemoteWriteGate() []Series {
	return []Series{
		{RemoteWriteRequests, "counter", []string{Code}, "Requests, by the status of the answer."},
		{RemoteWriteSamples, "counter", []string{Cluster}, "Samples that the store took."},
		{RemoteWriteRefused, "counter", []string{Cluster, Reason}, "Requests that were refused for what was in them."},
		{RemoteWriteSeries, "gauge", []string{Cluster}, "Different series that arrived within the last hour."},
	}
}

// Series of an agent that makes slices itself.
const (
	// SlicesSent counts the samples that were sent.
	SlicesSent = "bellwether_slices_sent_samples_total"
	// SlicesDropped counts the samples that were lost for a Reason.
	SlicesDropped = "bellwether_slices_dropped_samples_total"
	// SlicesWaiting is the number of samples in the queue.
	SlicesWaiting = "bellwether_slices_waiting_samples"
)

// SliceSender returns the series about sending of an agent that makes slices itself.
func SliceSender() []Series {
	return []Series{
		{SlicesSent, "counter", nil, "Samples that the receiver took."},
		{SlicesDropped, "counter", []string{Reason},
			"Samples that were lost: old, while the receiver was away for too long, or refused by it."},
		{SlicesWaiting, "gauge", nil, "Samples that are to be sent."},
	}
}
