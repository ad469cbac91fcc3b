// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"fmt"
	"strconv"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// Annotations and a label of Hive from its documentation. Hive's API has no constants for them.
const (
	hiveReconcilePause = "hive.openshift.io/reconcile-pause"
	hiveRelocate       = "hive.openshift.io/relocate"
	hiveVersion        = "hive.openshift.io/version"
)

// newHiveKind returns the kind for Hive's ClusterDeployments.
func newHiveKind() Kind {
	return Kind{
		Name: "hive", Group: hivev1.HiveAPIGroup, Kind: "ClusterDeployment", Plural: "clusterdeployments",
		Versions: []string{hivev1.HiveAPIVersion},
		keep: [][]string{{"spec", "installed"}, {"spec", "powerState"}, {"spec", "clusterPoolRef"},
			{"spec", "platform"}, {"status", "powerState"}},
		annotations: []string{hiveReconcilePause, hiveRelocate},
		observe:     observeHive,
		secret:      findHiveSecret,
	}
}

// decodeHive converts an object to a ClusterDeployment.
func decodeHive(o object) (*hivev1.ClusterDeployment, error) {
	deployment := &hivev1.ClusterDeployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, deployment); err != nil {
		return nil, fmt.Errorf("decode ClusterDeployment: %w", err)
	}
	return deployment, nil
}

// observeHive sets the fields of a Source from a ClusterDeployment.
func observeHive(o object, s *Source) {
	s.setField("version", s.Labels[hiveVersion])
	annotations := o.GetAnnotations()
	s.Paused, _ = strconv.ParseBool(annotations[hiveReconcilePause])
	// Hive ignores a ClusterDeployment with this annotation, for any value.
	_, s.Relocating = annotations[hiveRelocate]
	deployment, err := decodeHive(o)
	if err != nil {
		s.NotReady = err.Error()
		return
	}
	platform, region := readHivePlatform(deployment.Spec.Platform)
	s.setField("platform", s.Labels[hivev1.HiveClusterPlatformLabel], platform)
	s.setField("region", s.Labels[hivev1.HiveClusterRegionLabel], region)
	s.PowerState = convertHivePowerState(deployment.Spec.PowerState, deployment.Status.PowerState)
	pool := deployment.Spec.ClusterPoolRef
	switch {
	case !deployment.Spec.Installed:
		s.NotReady = "the cluster is not installed yet"
	case pool != nil && pool.ClaimName == "":
		s.NotReady = "the cluster waits in a ClusterPool and is not claimed yet"
	}
}

// readHivePlatform returns the name of the platform that is set, and its region if it has regions.
func readHivePlatform(p hivev1.Platform) (platform, region string) {
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

// convertHivePowerState converts Hive's power states to the power states of a source. Hive waits for SyncSets before
// it stops machines.
func convertHivePowerState(desired, reported hivev1.ClusterPowerState) v1alpha1.ClusterPowerState {
	switch reported {
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
		if desired == hivev1.ClusterPowerStateHibernating {
			return v1alpha1.PowerStopping
		}
		return v1alpha1.PowerRunning
	}
	return "" // Hive does not report the state, for example on platforms where it cannot stop machines
}

// findHiveSecret returns where the administrator's kubeconfig of a ClusterDeployment is.
func findHiveSecret(o object) (SecretKey, error) {
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
