// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the Bellwether API: the objects that say what should
// run where in a fleet of clusters, and how far that has come.
//
// The chain is loose. A ManagedOperator is the intention; the hub turns each
// change of it into an OperatorRollout; a rollout admits OperatorInstalls, one
// per operator and cluster; the agent of that cluster makes it so through the
// cluster's own OLM. FleetCluster is a member of the fleet and OperatorCatalog
// a published file-based catalog.
//
// All kinds follow the Kubernetes API conventions: metav1.Condition with an
// observedGeneration, and the kstatus conditions Ready, Reconciling and Stalled.
//
// +kubebuilder:object:generate=true
// +groupName=bellwether.dev
package v1alpha1
