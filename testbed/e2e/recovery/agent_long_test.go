// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package recovery

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/catalogs/compile/folder"
	"github.com/bellwether-dev/bellwether/catalogs/ladder"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/release/agentbundle"
	"github.com/bellwether-dev/bellwether/release/image"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

// brokenAgent is a version of the agent that does not start.
const brokenAgent = "1.2.0"

// agents are those of a fleet that OLM installs.
type agents struct {
	*fixture
	// made are the bundles by their version.
	made map[string]*build.Result
	// catalog is where they are published.
	catalog string
}

// TestBrokenAgent has OLM install the agents of two clusters from their bundle. A rollout upgrades them while they
// manage another operator. A broken version stops at the first cluster and leaves the other alone, and the recovery
// that the docs tell of brings the cluster back.
func TestBrokenAgent(t *testing.T) {
	a := &agents{fixture: start(t), made: map[string]*build.Result{}}
	for _, version := range []string{"1.0.0", "1.1.0", brokenAgent} {
		a.release(version)
	}
	for _, m := range members() {
		a.applyManifest(m.Name, "1.0.0")
		a.must(a.p.Join(t.Context(), m, "--set", "agent.part=cluster"))
	}
	a.manageEcho()
	a.manage("1.0.0")
	a.finished(1, v1alpha1.RolloutSucceeded)
	a.agentsRun("1.0.0", "1.0.0")
	for _, m := range members() {
		a.deleteOn(m.Name, object("CatalogSource", v1alpha1.AgentPackage+"-catalog"))
	}

	a.setAgent("1.1.0")
	a.finished(2, v1alpha1.RolloutSucceeded)
	a.agentsRun("1.1.0", "1.1.0")

	a.setAgent(brokenAgent)
	a.finished(3, v1alpha1.RolloutHalted)
	canary, other := members()[0].Name, members()[1].Name
	a.online(canary, false)
	a.online(other, true)
	if csv := a.agentOf(other); csv != "bellwether-agent.v1.1.0" {
		t.Errorf("the second wave has agent %s", csv)
	}

	a.block(brokenAgent)
	a.deleteOn(canary, object("Subscription", v1alpha1.AgentPackage),
		object("CatalogSource", "bellwether-"+v1alpha1.AgentPackage),
		object("ClusterServiceVersion", "bellwether-agent.v"+brokenAgent),
		object("ClusterServiceVersion", "bellwether-agent.v1.1.0"))
	a.applyManifest(canary, "1.1.0")
	a.online(canary, true)
	a.setAgent("1.1.0")
	a.finished(4, v1alpha1.RolloutSucceeded)
	a.agentsRun("1.1.0", "1.1.0")
	a.deleteOn(canary, object("CatalogSource", v1alpha1.AgentPackage+"-catalog"))
	a.setVersion("1.1.0") // the agents still do their work
	a.runs("1.1.0", "1.1.0")
}

// release makes and publishes a version of the agent, as a release does.
func (a *agents) release(version string) {
	a.t.Helper()
	made, err := agentbundle.Build(charts.Release{Version: version})
	a.must(err)
	a.setFlags(made, settings()...)
	if version == brokenAgent {
		a.setFlags(made, "--no-such-flag")
	}
	a.made[version] = made
	published, err := agentbundle.Publish(a.t.Context(), image.Target{Client: oci.NewClient(oci.Options{}),
		Registry: a.p.Registry + "/bellwether"}, made, time.Now())
	a.must(err)
	a.catalog = published.Catalog.Repository + ":" + published.Catalog.Tag
}

// setFlags adds to those that a bundle runs the agent with; the last one of a name counts.
func (a *agents) setFlags(made *build.Result, flags ...string) {
	a.t.Helper()
	const csv = "manifests/bellwether-agent.clusterserviceversion.yaml"
	line := regexp.MustCompile(`(?m)^( *- )--own-namespace=.*\n`)
	text := line.ReplaceAllString(string(made.Files[csv]), "${0}${1}"+strings.Join(flags, "\n${1}")+"\n")
	if text == string(made.Files[csv]) {
		a.t.Fatal("the bundle has other flags")
	}
	made.Files[csv] = []byte(text)
}

// settings are what differs on the testbed: it has no DNS, and all pods share one host.
func settings() []string {
	return []string{
		"--view-host=$$(POD_IP)", "--view-bind-address=$$(POD_IP)", "--metrics-bind-address=$$(POD_IP):8080",
		"--health-probe-bind-address=$$(POD_IP):8081", "--lease-renew-interval=2s", "--lease-duration=10s",
	}
}

// applyManifest applies a release's manifest to a cluster. The testbed runs no pods of catalogs, so `catalog serve` is
// in the place of the catalog's image.
func (a *agents) applyManifest(cluster, version string) {
	a.t.Helper()
	c, err := a.p.Client(cluster, platform.Scheme())
	a.must(err)
	text, err := agentbundle.BuildManifest(version, a.catalog)
	a.must(err)
	address := a.serveCatalog(version)
	for document := range strings.SplitSeq(string(text), "---\n") {
		o := &unstructured.Unstructured{}
		a.must(yaml.Unmarshal([]byte(document), &o.Object))
		switch o.GetKind() {
		case "":
			continue
		case operatorsv1alpha1.CatalogSourceKind:
			o.Object["spec"] = map[string]any{"sourceType": "grpc", "address": address}
		}
		if err := c.Create(a.t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			a.t.Fatal(err)
		}
	}
}

// serveCatalog serves a catalog with one version of the agent until the test ends, and returns the address.
func (a *agents) serveCatalog(version string) string {
	a.t.Helper()
	dir := a.t.TempDir()
	a.must(build.Write(filepath.Join(dir, "bundle"), a.made[version].Files))
	file, err := ladder.New(folder.Path(dir, v1alpha1.AgentPackage), &ladder.Ladder{APIVersion: ladder.APIVersion,
		Kind: ladder.Kind, Package: v1alpha1.AgentPackage, Channels: []string{agentbundle.Channel},
		Bundles: []ladder.Bundle{{Version: version, Path: "bundle", Channel: agentbundle.Channel}}})
	a.must(err)
	a.must(folder.Save(file))
	out := filepath.Join(dir, "catalog")
	_, err = folder.Compile(a.t.Context(), dir, out, folder.Options{Now: time.Now()})
	a.must(err)

	ctx, cancel := context.WithCancel(context.Background())
	c := a.p.Program(ctx, nil, "catalog", "serve", out, "--addr", "127.0.0.1:0")
	c.Stdout, c.Stderr = nil, nil
	printed, err := c.StdoutPipe()
	a.must(err)
	c.Stderr = c.Stdout
	a.must(c.Start())
	a.t.Cleanup(func() {
		cancel()
		_ = c.Wait() // it was interrupted
	})
	line, err := bufio.NewReader(printed).ReadString('\n')
	_, address, ok := strings.Cut(strings.TrimSpace(line), " on ")
	if err != nil || !ok {
		a.t.Fatalf("catalog serve printed %q: %v", line, err)
	}
	return address
}

// manageEcho installs the operator that the agents manage.
func (a *agents) manageEcho() {
	a.t.Helper()
	ref, err := a.p.Publish(a.t.Context(), name, "1.0.0", "1.1.0")
	a.must(err)
	for _, o := range a.manifests(ref) {
		switch o := o.(type) {
		case *v1alpha1.FleetCluster:
			continue // made by fleet join
		case *v1alpha1.ManagedOperator:
			o.Spec.Version, o.Spec.Strategy.Waves[1].Gates = "1.0.0", nil
		}
		a.must(a.hub.Create(a.t.Context(), o))
	}
	a.runs("1.0.0", "1.0.0")
}

func (a *agents) manage(version string) {
	a.t.Helper()
	wave := func(ring string) v1alpha1.Wave {
		return v1alpha1.Wave{Name: ring, Deadline: &metav1.Duration{Duration: 90 * time.Second},
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"ring": ring}}}
	}
	a.must(a.hub.Create(a.t.Context(), &v1alpha1.OperatorCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: v1alpha1.AgentPackage},
		Spec: v1alpha1.OperatorCatalogSpec{PollInterval: &metav1.Duration{Duration: time.Minute},
			Source: v1alpha1.CatalogSource{Image: a.catalog, Insecure: true}},
	}))
	a.must(a.hub.Create(a.t.Context(), &v1alpha1.ManagedOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: platform.Namespace, Name: v1alpha1.AgentPackage},
		Spec: v1alpha1.ManagedOperatorSpec{
			Package: v1alpha1.AgentPackage, Version: version,
			Catalog: v1alpha1.LocalReference{Name: v1alpha1.AgentPackage},
			Install: v1alpha1.OperatorInstallation{InstallSettings: v1alpha1.InstallSettings{
				Namespace: agentbundle.Namespace}},
			Strategy: v1alpha1.RolloutStrategy{Waves: []v1alpha1.Wave{wave("canary"), wave("prod")}},
		},
	}))
}

func (a *agents) setAgent(version string) {
	a.t.Helper()
	mo := &v1alpha1.ManagedOperator{}
	a.must(a.hub.Get(a.t.Context(), client.ObjectKey{Namespace: platform.Namespace, Name: v1alpha1.AgentPackage}, mo))
	patch := client.MergeFrom(mo.DeepCopy())
	mo.Spec.Version = version
	a.must(a.hub.Patch(a.t.Context(), mo, patch))
}

// finished waits for a rollout of the agents to be in a phase.
func (a *agents) finished(revision int, phase v1alpha1.RolloutPhase) {
	a.t.Helper()
	a.until(fmt.Sprintf("rollout %d of the agents is %s", revision, phase), func(ctx context.Context) error {
		ro := &v1alpha1.OperatorRollout{}
		key := client.ObjectKey{Namespace: platform.Namespace,
			Name: fmt.Sprintf("%s-%d", v1alpha1.AgentPackage, revision)}
		if err := a.hub.Get(ctx, key, ro); err != nil {
			return err
		}
		if ro.Status.Phase != phase {
			return fmt.Errorf("it is %s: %s", ro.Status.Phase, ro.Status.Message)
		}
		return nil
	})
}

// agentsRun waits until the clusters report these versions of their own agents, and that they are Ready.
func (a *agents) agentsRun(versions ...string) {
	a.t.Helper()
	for i, m := range members() {
		a.until(m.Name+" has agent "+versions[i], func(ctx context.Context) error {
			oi := &v1alpha1.OperatorInstall{}
			reference := v1alpha1.OperatorReference{Namespace: platform.Namespace, Name: v1alpha1.AgentPackage}
			err := a.hub.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(m.Name),
				Name: reference.InstallName()}, oi)
			if err != nil {
				return err
			}
			if oi.Status.Installed == nil || oi.Status.Installed.Version != versions[i] ||
				!conditions.IsTrue(oi.Status.Conditions, v1alpha1.ConditionReady) {
				return fmt.Errorf("%+v: %+v", oi.Status.Installed, conditions.Get(oi.Status.Conditions,
					v1alpha1.ConditionReady))
			}
			return nil
		})
		if csv := a.agentOf(m.Name); csv != "bellwether-agent.v"+versions[i] {
			a.t.Errorf("OLM has %s on %s, want version %s", csv, m.Name, versions[i])
		}
	}
}

// agentOf is the CSV that the agent's Subscription has installed.
func (a *agents) agentOf(cluster string) string {
	a.t.Helper()
	c, err := a.p.Client(cluster, platform.Scheme())
	a.must(err)
	sub := &operatorsv1alpha1.Subscription{}
	a.must(c.Get(a.t.Context(), client.ObjectKey{Namespace: agentbundle.Namespace, Name: v1alpha1.AgentPackage}, sub))
	return sub.Status.InstalledCSV
}

// block blocks a version on the hub, and waits until the clusters' namespaces have it.
func (a *agents) block(version string) {
	a.t.Helper()
	catalog := &v1alpha1.OperatorCatalog{}
	a.must(a.hub.Get(a.t.Context(), client.ObjectKey{Namespace: platform.Namespace, Name: v1alpha1.AgentPackage},
		catalog))
	patch := client.MergeFrom(catalog.DeepCopy())
	catalog.Spec.Blocks = append(catalog.Spec.Blocks, v1alpha1.VersionBlock{Package: v1alpha1.AgentPackage,
		Version: version, Reason: "it does not start"})
	a.must(a.hub.Patch(a.t.Context(), catalog, patch))
	for _, m := range members() {
		a.until(m.Name+" has the block", func(ctx context.Context) error {
			oi := &v1alpha1.OperatorInstall{}
			reference := v1alpha1.OperatorReference{Namespace: platform.Namespace, Name: v1alpha1.AgentPackage}
			err := a.hub.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterNamespace(m.Name),
				Name: reference.InstallName()}, oi)
			if err != nil {
				return err
			}
			if len(oi.Spec.Blocks) == 0 {
				return errors.New("it has none")
			}
			return nil
		})
	}
}

func object(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(operatorsv1alpha1.SchemeGroupVersion.WithKind(kind))
	o.SetNamespace(agentbundle.Namespace)
	o.SetName(name)
	return o
}

// deleteOn deletes objects of a cluster, those that are there, and waits until they are gone.
func (a *agents) deleteOn(cluster string, objects ...*unstructured.Unstructured) {
	a.t.Helper()
	c, err := a.p.Client(cluster, platform.Scheme())
	a.must(err)
	for _, o := range objects {
		err := c.Delete(a.t.Context(), o, &client.DeleteOptions{PropagationPolicy: ptr.To(
			metav1.DeletePropagationBackground)})
		a.must(client.IgnoreNotFound(err))
		a.until(o.GetName()+" is gone", func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
}
