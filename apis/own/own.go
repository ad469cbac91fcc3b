// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package own tells which operator is Bellwether's own agent, and so what is decided differently about it.
//
// An agent is an operator as any other: the agent that runs brings it to the next version by way of OLM. OLM replaces
// that agent in the middle of the installation, and the new one finishes it from what it observes. Two things are
// different, because nobody is left to report where the agent is gone:
//
//   - A cluster that was admitted to another version of the agent and is offline since has failed. A rollout of any
//     other operator defers clusters that are offline.
//   - An agent does not uninstall itself. It would end before it has reported, and the hub would wait for it. It is
//     left on the cluster, as with the removal policy Orphan.
//
// And an agent takes its own Subscription over, which people made with the manifest of a release, without
// spec.adopt of the ManagedOperator.
package own

// AgentPackage is the name of the agent's package in catalogs.
const AgentPackage = "bellwether-agent"

// IsAgent tells whether a package is Bellwether's own agent.
func IsAgent(pkg string) bool { return pkg == AgentPackage }
