// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package series

// HostedConnected is 1 while the hub accepts the reports of a hosted Cluster's agent, else 0.
const HostedConnected = "bellwether_hosted_cluster_connected"

// Hosting returns the series that a process exports about the clusters that it hosts.
func Hosting() []Series {
	return []Series{{HostedConnected, "gauge", []string{Cluster},
		"Whether the hub accepts the reports of a hosted cluster's agent."}}
}
