// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"fmt"
	"strconv"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Annotations and a label of Hive, as its documentation has them; its API has no constants for them.
const (
	hiveReconcilePause = "hive.openshift.io/reconcile-pause"
	hiveRelocate       = "hive.openshift.io/relocate"
	hiveVersion        = "hive.openshift.io/version"
)

func hive() Kind {
	return Kind{
		Name: "hive", Group: hivev1.HiveAPIGroup, Kind: "ClusterDeployment", Plural: "clusterdeployments",
		Versions: []string{hivev1.HiveAPIVersion},
		keep: [][]string{{"spec", "installed"}, {"spec", "powerState"}, {"spec", "clusterPoolRef"},
			{"spec", "platform"}, {"status", "powerState"}},
		annotations: []string{hiveReconcilePause, hiveRelocate},
		observe:     observeHive,
		secret:      hiveSecret,
	}
}

func decodeHive(o object) (*hivev1.ClusterDeployment, error) {
	deployment := &hivev1.ClusterDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment); err != nil {
		return nil, fmt.Errorf("decode ClusterDeployment: %w", err)
	}
	return deployment, nil
}

func observeHive(o object, s *Source) {
	s.set("version", s.Labels[hiveVersion])
	annotations := o.GetAnnotations()
	s.Paused, _ = strconv.ParseBool(annotations[hiveReconcilePause])
	// Hive leaves a ClusterDeployment alone as soon as it has the annotation, whatever its value.
	_, s.Relocating = annotations[hiveRelocate]
	deployment, err := decodeHive(o)
	if err != nil {
		s.NotReady = err.Error()
		return
	}
	platform, region := hivePlatform(deployment.Spec.Platform)
	s.set("platform", s.Labels[hivev1.HiveClusterPlatformLabel], platform)
	s.set("region", s.Labels[hivev1.HiveClusterRegionLabel], region)
	s.PowerState = hivePowerState(deployment.Spec.PowerState, deployment.Status.PowerState)
	pool := deployment.Spec.ClusterPoolRef
	switch {
	case !deployment.Spec.Installed:
		s.NotReady = "the cluster is not installed yet"
	case pool != nil && pool.ClaimName == "":
		s.NotReady = "the cluster waits in a ClusterPool and is not claimed yet"
	}
}

// hivePlatform returns the name of the platform that is set, and its region where it has regions.
func hivePlatform(p hivev1.Platform) (platform, region string) {
	switch {
	case p.AWS != nil:
		return "aws", p.AWS.Region
	case p.Azure != nil:
		return "azure", p.Azure.Region
	case p.GCP != nil:
		return "gcp", p.GCP.Region
	case p.IBMCloud != nil:
		return "ibmcloud", p.IBMCloud.Region
	case p.AgentBareMetal != nil:
		return "agentBareMetal", ""
	case p.BareMetal != nil:
		return "baremetal", ""
	case p.Nutanix != nil:
		return "nutanix", ""
	case p.OpenStack != nil:
		return "openstack", ""
	case p.VSphere != nil:
		return "vsphere", ""
	case p.None != nil:
		return "none", ""
	}
	return "", ""
}

// hivePowerState reduces Hive's power states to what matters to others. Hive waits for
// SyncSets before it stops machines.
func hivePowerState(wanted, seen hivev1.ClusterPowerState) v1alpha1.ClusterPowerState {
	switch seen {
	case hivev1.ClusterPowerStateHibernating:
		return v1alpha1.PowerHibernating
	case hivev1.ClusterPowerStateStopping, hivev1.ClusterPowerStateFailedToStop,
		hivev1.ClusterPowerStateWaitingForMachinesToStop:
		return v1alpha1.PowerStopping
	case hivev1.ClusterPowerStateStartingMachines, hivev1.ClusterPowerStateFailedToStartMachines,
		hivev1.ClusterPowerStateWaitingForMachines, hivev1.ClusterPowerStateWaitingForNodes,
		hivev1.ClusterPowerStatePausingForClusterOperatorsToSettle,
		hivev1.ClusterPowerStateWaitingForClusterOperators:
		return v1alpha1.PowerResuming
	case hivev1.ClusterPowerStateRunning, hivev1.ClusterPowerStateSyncSetsNotApplied:
		if wanted == hivev1.ClusterPowerStateHibernating {
			return v1alpha1.PowerStopping
		}
		return v1alpha1.PowerRunning
	}
	return "" // Hive cannot tell, as on platforms that it does not stop machines on
}

func hiveSecret(o object) (SecretKey, error) {
	deployment, err := decodeHive(o)
	if err != nil {
		return SecretKey{}, err
	}
	metadata := deployment.Spec.ClusterMetadata
	if metadata == nil || metadata.AdminKubeconfigSecretRef.Name == "" {
		return SecretKey{}, errors.New("spec.clusterMetadata.adminKubeconfigSecretRef is not set: the cluster is not " +
			"installed yet")
	}
	return SecretKey{Secret: metadata.AdminKubeconfigSecretRef.Name, Key: "kubeconfig"}, nil
}
