// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hollow runs the agents of thousands of fleet clusters in one process, against a real hub and a real API
// server. There are no clusters behind them: OLM is simulated.
//
// What an agent does on the hub is the agent's own code: the install controller of controllers/agent/install in its
// shell of controllers/kit, the decisions and the statuses of engines and engines/olmv0/plan, and the Lease of
// controllers/agent/heartbeat. Each request is made as the ServiceAccount of its cluster's agent, so that RBAC and
// admission policies judge it as they judge an agent's.
//
// Simulated are the state of OLM on each cluster (operator), the network between a cluster and the hub (network), and
// the cluster's API server. How long a step takes, whether it fails and when a cluster is cut off is drawn from a seed
// and from names alone, so that the same seed gives the same events whatever the order of things is.
//
// What this does not show: real networks, a real OLM, the latency of clusters' API servers, kubelets, the memory and
// the processor time of an agent.
package hollow
