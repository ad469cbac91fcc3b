// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operators_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/rollouts/operators"
)

// A public key as openssl writes it.
const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----
`

// hexadecimal returns a text with the length of a hash.
func hexadecimal(digits int) string { return strings.Repeat("0123456789abcdef", digits/16) }

// realistic is an operator of a fleet with a catalog of many packages: the catalog
// is signed by one of two keys, and has 20 blocks, 2 of them on this operator.
func realistic(t *testing.T) operators.Input {
	in := newInput(t)
	in.Operator.Namespace, in.Operator.Name = "platform-operators", "grafana-operator"
	in.Operator.Spec.Package = "grafana-operator"
	files := catalogs.SingleFile("test", strings.NewReader(catalogtest.Graph("grafana-operator", "5.31.2")))
	var err error
	if in.Package, err = catalogs.ReadPackage(files, "grafana-operator"); err != nil {
		t.Fatal(err)
	}
	in.Catalog.Namespace = in.Operator.Namespace
	in.Catalog.Spec.Verification = &v1alpha1.CatalogVerification{PublicKeys: []string{publicKey, publicKey}}
	source := v1alpha1.CatalogSource{
		Image: "registry.internal.example.com:5000/platform/operator-catalogs/production:stable"}
	in.Catalog.Spec.Source, in.Catalog.Status.Source = source, &source
	in.Catalog.Status.Digest = "sha256:" + hexadecimal(64)
	for i := range 20 {
		pkg := fmt.Sprintf("package-number-%d", i/2)
		if i < 2 {
			pkg = "grafana-operator"
		}
		in.Catalog.Spec.Blocks = append(in.Catalog.Spec.Blocks, v1alpha1.VersionBlock{
			Package: pkg, Version: fmt.Sprintf("5.%d.1", i), Instead: "5.31.2", Expires: "2026-12-31",
			Reason: "Loses dashboards when a folder is renamed, see INC-4711 and the release notes",
		})
	}
	in.Operator.Spec.Install = v1alpha1.OperatorInstallation{InstallSettings: v1alpha1.InstallSettings{
		Namespace: "grafana-operator-system", Config: &v1alpha1.OperatorConfig{
			Env: []corev1.EnvVar{{Name: "HTTPS_PROXY", Value: "http://proxy.internal.example.com:3128"}},
			Resources: &corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceMemory: resource.MustParse("512Mi")}},
		}}}
	in.Rollouts, in.Installs = nil, nil
	return in
}

// installOf is the OperatorInstall of a cluster that runs what was admitted, without
// managed fields and conditions.
func installOf(t *testing.T, in operators.Input) *v1alpha1.OperatorInstall {
	t.Helper()
	rollout := operators.Next(in).Create
	if rollout == nil {
		t.Fatal("no rollout")
		return nil
	}
	const cluster, uid = "prod-eu-central-1-042", types.UID("0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f")
	at := metav1.NewTime(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	operator := v1alpha1.OperatorReference{Namespace: in.Operator.Namespace, Name: in.Operator.Name}
	labels := operator.Labels()
	labels[v1alpha1.LabelCluster], labels[v1alpha1.LabelRollout] = cluster, rollout.Name
	labels[v1alpha1.LabelWave] = "production"
	release := rollout.Spec.Release
	return &v1alpha1.OperatorInstall{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "OperatorInstall"},
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ClusterNamespace(cluster), Name: operator.InstallName(),
			UID: uid, ResourceVersion: "123456789", Generation: 12, CreationTimestamp: at, Labels: labels,
			Finalizers: []string{v1alpha1.FinalizerAgent}},
		Spec: v1alpha1.OperatorInstallSpec{
			Operator: operator, Cluster: cluster, RemovalPolicy: v1alpha1.RemovalOrphan,
			Blocks: catalogs.BlocksForInstalls(in.Catalog, in.Package, in.Operator.Spec.Package),
			Admission: &v1alpha1.Admission{Rollout: rollout.Name, RolloutUID: string(uid), Revision: 12,
				Wave: "production", Hash: release.Hash(), AdmittedAt: at, Release: release},
		},
		Status: v1alpha1.OperatorInstallStatus{
			ObservedGeneration: 12, ObservedRevision: 12, SucceededHash: release.Hash(), SucceededAt: &at,
			Installed: &v1alpha1.InstalledVersion{Bundle: release.Bundle, Version: release.Version},
			OLM: &v1alpha1.OLMStatus{CatalogSource: "bellwether-grafana-operator",
				ViewAddress: "10.96.117.203:50112", Route: v1alpha1.RouteInline, Subscription: "grafana-operator",
				InstallPlan: "install-x7k2p",
				CSVPhase:    "Succeeded"},
		},
	}
}

// maxInstall bounds a large OperatorInstall without managed fields and conditions. The
// budget is 1.5 KiB at the median, and needs releases that are shared: see
// docs/decisions/0058-an-install-says-nothing-twice.md.
const maxInstall = 2700

// TestInstallCarriesOnlyWhatConcernsIt holds the size of an OperatorInstall, of which
// a hub keeps 30 for each cluster.
func TestInstallCarriesOnlyWhatConcernsIt(t *testing.T) {
	in := realistic(t)
	install := installOf(t, in)
	if size := encoded(t, install); size > maxInstall {
		t.Errorf("%d bytes, want at most %d", size, maxInstall)
	}
	if len(install.Spec.Blocks) != 2 {
		t.Errorf("it carries %d of %d blocks, want those of its package", len(install.Spec.Blocks),
			len(in.Catalog.Spec.Blocks))
	}
	for name, part := range map[string]any{"metadata": install.ObjectMeta, "spec": install.Spec,
		"admission": install.Spec.Admission, "keys": install.Spec.Admission.Release.Catalog.PublicKeys,
		"catalog": install.Spec.Admission.Release.Catalog, "settings": install.Spec.Admission.Release.Install,
		"blocks": install.Spec.Blocks, "status": install.Status} {
		t.Logf("%-9s %5d bytes", name, encoded(t, part))
	}
}

func encoded(t *testing.T, object any) int {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}
