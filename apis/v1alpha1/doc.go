// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the Bellwether API: the objects that define what should run on which clusters of a fleet, and
// the objects that show the progress.
//
// A ManagedOperator is the desired state of an operator. The hub creates an OperatorRollout for each change of it. A
// rollout admits OperatorInstalls, one for each operator and cluster. The agent of the cluster carries out the
// OperatorInstall with the cluster's OLM. A FleetCluster is a member of the fleet, and an OperatorCatalog is a
// published file-based catalog.
//
// All kinds follow the Kubernetes API conventions: metav1.Condition with an
// observedGeneration, and the kstatus conditions Ready, Reconciling and Stalled.
//
// +kubebuilder:object:generate=true
// +groupName=bellwether.dev
package v1alpha1
