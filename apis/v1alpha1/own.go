// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AgentPackage is the name of the agent's package in catalogs.
//
// The agent is an operator like any other: the running agent upgrades it to the next version with OLM. OLM replaces
// that agent during the installation, and the new agent continues from what it observes. Three things are different:
//
//   - A cluster that was admitted to another version of the agent and has been offline since counts as failed. A
//     rollout of any other operator defers clusters that are offline.
//   - An agent does not uninstall itself, because it would end before it has reported, and the hub would wait for it.
//     It stays on the cluster, as with the removal policy Orphan.
//   - An agent takes over its own Subscription, which people created with the manifest of a release, even if the
//     ManagedOperator has no spec.adopt.
const AgentPackage = "bellwether-agent"

// IsAgent reports whether a package is the agent of Bellwether.
func IsAgent(pkg string) bool { return pkg == AgentPackage }
