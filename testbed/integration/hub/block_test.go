// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/catalogs/sign"
	"github.com/bellwether-dev/bellwether/testbed/testenv"
)

// block blocks versions of echo on the hub; none lifts every block.
func (f *fixture) block(versions ...string) {
	f.t.Helper()
	f.change(f.t, f.catalog, func() {
		f.catalog.Spec.Blocks = nil
		for _, v := range versions {
			f.catalog.Spec.Blocks = append(f.catalog.Spec.Blocks,
				v1alpha1.VersionBlock{Package: "echo", Version: v, Reason: "it loses data"})
		}
	})
}

// waitForBlocks waits until an agent's install carries blocks of these versions only.
func (f *fixture) waitForBlocks(agent string, want ...string) {
	f.t.Helper()
	eventually(f.t, func() error {
		install := &v1alpha1.OperatorInstall{}
		reference := v1alpha1.OperatorReference{Namespace: f.namespace, Name: "echo"}
		key := client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(f.agents[agent].cluster.Name),
			Name: reference.InstallName()}
		if err := f.agents[agent].Get(f.t.Context(), key, install); err != nil {
			return err
		}
		var got []string
		for _, b := range install.Spec.Blocks {
			got = append(got, b.Version)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%w: %s is told (-want +got):\n%s", errNotYet, agent, diff)
		}
		return nil
	})
}

// blocked waits until a rollout knows that its version is blocked, or is not.
func (f *fixture) blocked(r *v1alpha1.OperatorRollout, want string) {
	f.t.Helper()
	eventually(f.t, func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
			return err
		}
		if r.Spec.Blocked != want {
			return fmt.Errorf("%w: rollout %s is blocked by %q, want %q", errNotYet, r.Name, r.Spec.Blocked, want)
		}
		return nil
	})
}

func TestABlockedVersionIsNoTarget(t *testing.T) {
	f, _ := settled(t)
	f.edit(func(s *v1alpha1.ManagedOperatorSpec) { s.Version = "1.2.0" })
	f.republish(third)
	r := f.rollouts("echo-1", "echo-2")["echo-2"]
	f.phase(r, v1alpha1.RolloutProgressing)
	f.runs("a", r)

	f.block("1.2.0")
	f.reaches(t, f.operator, "Stalled VersionBlocked", "version 1.2.0 is blocked: it loses data",
		"set spec.version to 1.1.0", "1 cluster runs 1.2.0")
	f.blocked(r, "it loses data")
	f.waitForBlocks("a", "1.2.0")
	f.waitForBlocks("b", "1.2.0")
	f.reaches(t, f.catalog, "True Succeeded")
	a := f.agents["a"].cluster.Name
	eventually(t, func() error {
		if err := f.Get(t.Context(), client.ObjectKeyFromObject(f.catalog), f.catalog); err != nil {
			return err
		}
		if got := f.catalog.Status.BlockedVersions; len(got) != 1 || got[0].Clusters != 1 ||
			!cmp.Equal(got[0].ClusterNames, []string{a}) {
			return fmt.Errorf("%w: blocked versions %+v", errNotYet, got)
		}
		return nil
	})
	c := conditions.Get(f.catalog.Status.Conditions, v1alpha1.ConditionBlockedVersionInUse)
	if want := "1 cluster runs echo 1.2.0, which is blocked (it loses data): " + a +
		"; there is no newer version"; !strings.HasPrefix(c.Message, want) {
		t.Errorf("condition %q, want %q", c.Message, want)
	}
	counts := map[string]int32{}
	for _, v := range f.catalog.Status.Packages[0].Versions {
		counts[v.Version] = v.Clusters
	}
	if diff := cmp.Diff(map[string]int32{"1.2.0": 1, "1.1.0": 1, "1.0.0": 0}, counts); diff != "" {
		t.Errorf("clusters by version (-want +got):\n%s", diff)
	}
	f.event("VersionBlocked", "1 cluster runs echo 1.2.0")

	f.block()
	f.blocked(r, "")
	f.waitForBlocks("a")
	f.reaches(t, f.operator, "False Progressing")
	f.rollouts("echo-1", "echo-2")
}

// event waits for an Event about the catalog.
func (f *fixture) event(reason, contains string) {
	f.t.Helper()
	eventually(f.t, func() error {
		var list eventsv1.EventList
		if err := f.List(f.t.Context(), &list, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Regarding.Name == f.catalog.Name && e.Reason == reason && strings.Contains(e.Note, contains) {
				return nil
			}
		}
		return fmt.Errorf("%w: no event %s about the catalog among %d", errNotYet, reason, len(list.Items))
	})
}

func TestTheHeadIsTheNewestGoodVersion(t *testing.T) {
	f, _ := settled(t)
	f.block("1.2.0")
	f.republish(third)
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.1.0")
	f.republish(third + "\n1.3.0 replaces 1.2.0")
	r := f.rollouts("echo-1", "echo-2")["echo-2"]
	if r.Spec.Release.Version != "1.3.0" {
		t.Errorf("rolls out %s", r.Spec.Release.Version)
	}
}

// A rollout to a version that becomes blocked stops, with every controller of
// the hub at work, and goes on when the block is lifted.
func TestABlockHaltsItsRollout(t *testing.T) {
	t.Parallel()
	f := newFixtureOn(t, startWhole(t), second, "a", "b")
	f.agents["a"].work(t)
	one := intstr.FromInt32(1)
	f.operator.Spec.Strategy.Waves = []v1alpha1.Wave{{Name: "canary", MaxConcurrency: &one}}
	f.operator.Spec.Version = "1.1.0"
	f.create()
	r := f.rollouts("echo-1")["echo-1"]
	eventually(t, func() error { return f.counts(r, 2) })
	f.block("1.1.0")
	f.reaches(t, r, "Stalled VersionBlocked", "1.1.0 is blocked: it loses data")
	if r.Status.Phase != v1alpha1.RolloutHalted {
		t.Errorf("phase %s", r.Status.Phase)
	}
	checkApplied(t, "blocked", r)
	f.agents["b"].work(t)
	f.block()
	f.reaches(t, f.operator, "True Succeeded", "2 of 2 clusters run 1.1.0")
	f.rollouts("echo-1")
	t.Run("Others", func(t *testing.T) { f.othersGoOn(t) })
}

// othersGoOn blocks as many versions of echo as an OperatorCatalog can, and has another operator installed on the same
// clusters, and upgraded.
func (f *fixture) othersGoOn(t *testing.T) {
	blocked := []string{"1.0.0", "1.1.0"}
	for i := len(blocked); i < maxBlocks; i++ {
		blocked = append(blocked, fmt.Sprintf("2.0.%02d", i))
	}
	f.block(blocked...)
	f.reaches(t, f.operator, "Stalled VersionBlocked")
	f.waitForBlocks("a", blocked...)
	f.waitForBlocks("b", blocked...)
	dir := t.TempDir()
	write := func(notation string) {
		must(t, os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(catalogtest.Graph("other", notation)), 0o600))
	}
	write(first)
	catalog := f.catalog.DeepCopy()
	catalog.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: "other"}
	catalog.Spec.Source, catalog.Spec.Blocks = v1alpha1.CatalogSource{Directory: dir}, nil
	must(t, f.Create(t.Context(), catalog))
	other := &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "other"},
		Spec: v1alpha1.ManagedOperatorSpec{Package: "other", Catalog: v1alpha1.LocalReference{Name: "other"},
			ClusterSelector: f.operator.Spec.ClusterSelector}}
	must(t, f.Create(t.Context(), other))
	f.reaches(t, other, "True Succeeded", "2 of 2 clusters run 1.0.0")
	write(second)
	f.lookAgain(t, catalog)
	f.reaches(t, other, "True Succeeded", "2 of 2 clusters run 1.1.0")
	f.reaches(t, f.operator, "Stalled VersionBlocked")
}

// maxBlocks is how many blocks the API accepts in an OperatorCatalog.
const maxBlocks = 100

// counts objects to a rollout that has other members.
func (f *fixture) counts(r *v1alpha1.OperatorRollout, total int32) error {
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		return err
	}
	if r.Status.Clusters.Total != total {
		return fmt.Errorf("%w: %d clusters", errNotYet, r.Status.Clusters.Total)
	}
	return nil
}

// attachSignature attaches a signature of the digest by a key.
func attachSignature(t *testing.T, image, digest string, signer *sign.Signer) {
	t.Helper()
	content, err := signer.Sign(digest)
	must(t, err)
	_, err = oci.NewClient(oci.Options{}).Attach(t.Context(), image,
		oci.Artifact{Type: sign.BundleMediaType, Content: content}, oci.Access{})
	must(t, err)
}

func newSigner(t *testing.T) *sign.Signer {
	t.Helper()
	pair, err := sign.GenerateKey(sign.ECDSA, nil)
	must(t, err)
	signer, err := sign.NewSigner(pair.Private, nil)
	must(t, err)
	return signer
}

func TestACatalogThatMustBeSigned(t *testing.T) {
	h := start(t)
	namespace := testenv.Namespace(t, h.cluster.RESTConfig(), "catalog")
	address, stop := serveRegistry(t, t.TempDir(), "")
	defer stop()
	image := address + "/catalogs/main:latest"
	push := func(notation string) string {
		dir := t.TempDir()
		publish(t, dir, notation)
		digest, err := oci.NewClient(oci.Options{}).Push(t.Context(), dir, image, oci.Access{})
		must(t, err)
		return digest
	}
	ours, theirs := newSigner(t), newSigner(t)
	first := push(first + "\n1.0.8 replaces 1.0.0") // a digest that no other test uses
	catalog := h.catalog(t, namespace, v1alpha1.CatalogSource{Image: image})
	h.reaches(t, catalog, "True Succeeded")

	h.change(t, catalog, func() {
		catalog.Spec.Verification = &v1alpha1.CatalogVerification{PublicKeys: []string{string(ours.PublicKey())}}
	})
	h.reaches(t, catalog, "Stalled SignatureMissing", "Sign the catalog", "stays in use ("+first+")")
	attachSignature(t, address+"/catalogs/main@"+first, first, theirs)
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "Stalled SignatureInvalid", "find out who pushed it")
	attachSignature(t, address+"/catalogs/main@"+first, first, ours)
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "True Succeeded", "signed by a trusted key")

	next := push(second + "\n1.1.8 replaces 1.1.0")
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "Stalled SignatureMissing", "stays in use ("+first+")")
	attachSignature(t, address+"/catalogs/main@"+next, next, ours)
	h.lookAgain(t, catalog)
	h.reaches(t, catalog, "True Succeeded", next)
}
