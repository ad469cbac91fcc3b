// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build long

package recovery

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/charts"
	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/cluster"
	"github.com/bellwether-dev/bellwether/testbed/hubchart"
	"github.com/bellwether-dev/bellwether/testbed/platform"
)

var (
	//go:embed testdata/previous.txt
	previousFile string
	// kindsFile has an object of each kind of which the hub creates none for an operator.
	//go:embed testdata/kinds.yaml
	kindsFile string

	objectsFile = flag.String("write-objects", "",
		"a file that an object of each kind is written to, as the previous release wrote it")
)

// Names of the Helm releases and of their namespace.
const (
	systemNamespace = "bellwether-system"
	hubRelease      = "bellwether"
	agentRelease    = "bellwether-agent"
)

// upgrade is a fleet that is upgraded from the previous release, and goes back to it.
type upgrade struct {
	*fixture
	// previous is the version of the previous release, current that of this tree.
	previous, current string
}

// TestUpgradeFromThePreviousRelease upgrades a fleet from the real programs of the previous release, as the docs
// describe it: first the hub, then the agents. A rollout is under way all the time. Each combination does some of its
// work: hub and agents of the previous release upgrade the operator on the first cluster; the new hub rolls it back in
// place there through the previous agent; after helm rollback of agent and hub, the previous programs finish the
// rollout. In the end everything is upgraded again, and nothing on the clusters changes by that.
func TestUpgradeFromThePreviousRelease(t *testing.T) {
	u := startPrevious(t)
	u.joinAll()
	u.runsAgents(u.previous, u.previous)
	image, err := u.p.Publish(t.Context(), name, "1.0.0", "1.1.0", "1.2.0")
	u.must(err)
	u.rollOutFirst(image)
	u.createKinds()
	u.writeObjects()

	u.p.UseCommandLine("")
	u.must(u.p.InstallHub(t.Context()))
	u.runsHub(u.current)
	u.acceptsObjects()
	u.gated("1.1.0") // the rollout that was under way
	u.runs("1.1.0", "1.0.0")
	u.setVersion("") // the newest version: 1.2.0
	u.gated("1.2.0")
	u.runs("1.2.0", "1.0.0")
	u.bellwether("rollout", "rollback", name, "--reason", "it fails half of its reconciles")
	u.runs("1.1.0", "1.0.0")
	u.gated("1.1.0")
	u.withdrawn("echo-operator.v1.2.0")

	canary := members()[0]
	u.must(u.p.Join(t.Context(), canary))
	u.runsAgents(u.current, u.previous)
	u.runs("1.1.0", "1.0.0")

	u.rollBack(canary.Name, agentRelease)
	u.runsAgents(u.previous, u.previous)
	u.rollBack("hub", hubRelease)
	u.runsHub(u.previous)
	u.gated("1.1.0")
	u.bellwether("rollout", "approve", name, "--reason", "the canary is fine")
	u.runs("1.1.0", "1.1.0")
	u.withdrawn("echo-operator.v1.0.0")
	clusters := u.clusterState()

	u.must(u.p.InstallHub(t.Context()))
	u.runsHub(u.current)
	u.acceptsObjects()
	u.joinAll()
	u.runsAgents(u.current, u.current)
	u.runs("1.1.0", "1.1.0")
	if diff := gocmp.Diff(clusters, u.clusterState()); diff != "" {
		t.Errorf("the second upgrade changed the clusters (-before +after):\n%s", diff)
	}
	for _, hold := range u.operator().Spec.Holds {
		if hold.Version == "1.2.0" {
			return
		}
	}
	t.Errorf("the version that was rolled back is not held: %+v", u.operator().Spec.Holds)
}

// startPrevious starts a fleet with the hub of the previous release. Its images have that release's version as tag, so
// the chart of each release runs the programs of that release.
func startPrevious(t *testing.T) *upgrade {
	t.Helper()
	commit, version := previousRelease(t)
	programs, err := build.Release(t.Context(), os.Stderr, commit, version)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := charts.Load()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]cluster.Image{}
	for _, name := range charts.Images {
		images[charts.Registry+"/"+name+":"+version] = cluster.Image{Path: programs[name]}
	}
	return &upgrade{previous: version, current: chart.AppVersion(), fixture: startWith(t,
		platform.Options{MoreImages: images, CommandLine: programs[build.Bellwether]})}
}

// previousRelease reads testdata/previous.txt.
func previousRelease(t *testing.T) (commit, version string) {
	t.Helper()
	for line := range strings.Lines(previousFile) {
		if fields := strings.Fields(line); len(fields) == 2 && !strings.HasPrefix(line, "#") {
			return fields[0], fields[1]
		}
	}
	t.Fatalf("testdata/previous.txt has no line with a commit and a version:\n%s", previousFile)
	return "", ""
}

// rollOutFirst has 1.0.0 on both clusters, and a rollout of 1.1.0 that waits after the first one.
func (u *upgrade) rollOutFirst(image string) {
	u.t.Helper()
	for _, o := range u.manifests(image) {
		switch o := o.(type) {
		case *v1alpha1.FleetCluster:
			continue // fleet join creates it
		case *v1alpha1.ManagedOperator:
			o.Spec.Version = "1.0.0"
		}
		u.must(u.hub.Create(u.t.Context(), o))
	}
	u.gated("1.0.0")
	u.bellwether("rollout", "approve", name, "--reason", "the canary is fine")
	u.runs("1.0.0", "1.0.0")
	u.setVersion("1.1.0")
	u.gated("1.1.0")
	u.runs("1.1.0", "1.0.0")
}

// createKinds creates the objects of testdata/kinds.yaml, and waits until those with a status have it.
func (u *upgrade) createKinds() {
	u.t.Helper()
	text := strings.ReplaceAll(kindsFile, "END", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	for document := range strings.SplitSeq(text, "---\n") {
		o := &unstructured.Unstructured{}
		u.must(yaml.Unmarshal([]byte(document), &o.Object))
		// The quota of a new namespace has no status for a moment, and refuses everything meanwhile.
		u.until("create "+o.GetKind(), func(ctx context.Context) error { return u.hub.Create(ctx, o) })
		if slices.Contains([]string{"FleetAccess", "ChangeWindow", "RolloutPolicy"}, o.GetKind()) {
			continue // they have no status
		}
		u.until(o.GetKind()+" has a status", func(ctx context.Context) error {
			if err := u.hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if status, _ := o.Object["status"].(map[string]any); len(status) == 0 {
				return errors.New("it has none")
			}
			return nil
		})
	}
}

// objects returns all objects of Bellwether's kinds on the hub, by kind.
func (u *upgrade) objects() map[string][]unstructured.Unstructured {
	u.t.Helper()
	var definitions apiextensionsv1.CustomResourceDefinitionList
	u.must(u.hub.List(u.t.Context(), &definitions))
	found := map[string][]unstructured.Unstructured{}
	for _, d := range definitions.Items {
		if d.Spec.Group != v1alpha1.SchemeGroupVersion.Group {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(d.Spec.Names.ListKind))
		u.must(u.hub.List(u.t.Context(), list))
		found[d.Spec.Names.Kind] = list.Items
	}
	return found
}

// writeObjects checks that there is an object of each kind, and writes one of each to the file of the flag.
func (u *upgrade) writeObjects() {
	u.t.Helper()
	var out bytes.Buffer
	all := u.objects()
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if len(all[kind]) == 0 {
			u.t.Fatalf("no object of the kind %s", kind)
		}
		o := slices.MaxFunc(all[kind], func(a, b unstructured.Unstructured) int {
			return cmp.Compare(len(a.Object), len(b.Object))
		})
		o.SetManagedFields(nil)
		text, err := yaml.Marshal(o.Object)
		u.must(err)
		out.WriteString("---\n" + string(text))
	}
	if *objectsFile != "" {
		u.must(os.WriteFile(*objectsFile, out.Bytes(), 0o600))
	}
}

// acceptsObjects checks that the API server accepts each object as it is.
func (u *upgrade) acceptsObjects() {
	u.t.Helper()
	for kind, objects := range u.objects() {
		for _, o := range objects {
			err := u.hub.Update(u.t.Context(), &o, client.DryRunAll)
			if err != nil && !apierrors.IsConflict(err) {
				u.t.Errorf("%s %s: %v", kind, client.ObjectKeyFromObject(&o), err)
			}
		}
	}
}

// clusterState is state without CatalogSources: they have the address of the agent's pod, which is a new one.
func (u *upgrade) clusterState() map[string]string {
	u.t.Helper()
	all := u.state()
	maps.DeleteFunc(all, func(object, _ string) bool { return strings.Contains(object, " CatalogSource ") })
	return all
}

// rollBack runs helm rollback on a cluster, to the revision before.
func (u *upgrade) rollBack(cluster, release string) {
	u.t.Helper()
	helm, err := hubchart.Helm(u.p.Fleet.Cluster(cluster).Kubeconfig(), systemNamespace)
	u.must(err)
	rollback := action.NewRollback(helm)
	rollback.Wait, rollback.Timeout = true, patience
	u.must(rollback.Run(release))
}

// runsHub waits until all pods of the hub run the image of a version.
func (u *upgrade) runsHub(version string) { u.runsImage("hub", "bellwether-hub", "hub:"+version) }

// runsAgents waits until the members' agents are of these versions, by their pods and by what they report to the hub.
func (u *upgrade) runsAgents(versions ...string) {
	u.t.Helper()
	for i, m := range members() {
		u.runsImage(m.Name, "bellwether-agent", "agent:"+versions[i])
		u.online(m.Name, true)
		u.until(m.Name+" reports its agent's version", func(ctx context.Context) error {
			fc := &v1alpha1.FleetCluster{}
			if err := u.hub.Get(ctx, client.ObjectKey{Name: m.Name}, fc); err != nil {
				return err
			}
			// A program of this tree is of no release.
			if got := fc.Status.Versions.Agent; (got == u.previous) != (versions[i] == u.previous) {
				return fmt.Errorf("it reports %q", got)
			}
			return nil
		})
	}
}

func (u *upgrade) runsImage(cluster, deployment, image string) {
	u.t.Helper()
	c, err := u.p.Client(cluster, platform.Scheme())
	u.must(err)
	u.until(cluster+" runs "+image, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: deployment}, d); err != nil {
			return err
		}
		got := d.Spec.Template.Spec.Containers[0].Image
		if s := d.Status; got != charts.Registry+"/"+image || s.ObservedGeneration != d.Generation ||
			s.UpdatedReplicas != s.Replicas || s.AvailableReplicas != s.Replicas || s.Replicas == 0 {
			return fmt.Errorf("it runs %s: %+v", got, s)
		}
		return nil
	})
}
